"""The sample of every guide to scheduler plugins: it says what it is asked, and lets every pod pass."""

import logging

import msgspec

# What is logged under "moorage" follows the scheduler's own -v.
log = logging.getLogger("moorage.sample-plugin")


class SamplePluginArgs(msgspec.Struct):
    favorite_color: str = ""
    favorite_number: int = 0
    thanks_to: str = ""


class SamplePlugin:
    name = "sample-plugin"

    def __init__(self, args: SamplePluginArgs):
        log.info("args: %s", args)

    def pre_filter(self, cycle, pod, nodes):
        log.info("prefilter pod: %s", pod.name)

    def filter_node(self, cycle, pod, node):
        log.info("filter pod: %s, node: %s", pod.name, node.name)

    def pre_bind(self, cycle, pod, node_name):
        log.info("prebind pod: %s, node: %s", pod.name, node_name)
