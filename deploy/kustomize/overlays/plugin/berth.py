class Berth:
    """Pods go where there is a berth, and rather to a large one."""

    name = "Berth"

    def filter(self, cycle, pod, nodes):
        return nodes.label("berth").exists().otherwise("node(s) had no berth")

    def score(self, cycle, pod, nodes):
        return nodes.label("berth").as_int()
