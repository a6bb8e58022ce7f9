"""Six nodes, of which three have a berth; they score 5, 10 and 5, and the pod goes to the best."""

from moorage import Cache, Engine, Profiles, decode_object, default_registry, parse_config


class Berth:
    """Pods go where there is a berth, and rather to a large one."""

    name = "Berth"

    def filter(self, cycle, pod, nodes):
        return nodes.label("berth").exists().otherwise("node(s) had no berth")

    def score(self, cycle, pod, nodes):
        return nodes.label("berth").as_int()


def node(name, **labels):
    return decode_object({"kind": "Node", "metadata": {"name": name, "labels": labels}})


cluster = Cache(
    [node("a"), node("b", berth="5"), node("c"), node("d", berth="10"), node("e", berth="5"), node("f")]
)
registry = default_registry()
registry.register("Berth", Berth)
config = parse_config(
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {
                    "multiPoint": {
                        "disabled": [{"name": "*"}],
                        "enabled": [{"name": "PrioritySort"}, {"name": "Berth"}, {"name": "DefaultBinder"}],
                    }
                }
            }
        ],
    }
)
framework = Profiles(config, registry)["default-scheduler"]
pod = decode_object({"kind": "Pod", "metadata": {"name": "tug", "namespace": "default"}})
decision = Engine(seed=1).decide(framework, pod, cluster.snapshot())

print("chosen:", decision.node)
for name in decision.feasible.names:
    print(name, decision.scores_of(name))
print("refused:", dict(decision.diagnosis.tally()))
