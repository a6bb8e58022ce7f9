// The views, in the order of the navigation. A view is a component with the properties `store` and `params`;
// it is offered where the source has its feature, or one of its features.
import { ClusterView } from "./cluster.js";
import { DecisionView } from "./decision.js";
import { HealthView } from "./health.js";
import { QueueView } from "./queue.js";
import { ShadowView } from "./shadow.js";
import { TimeView } from "./time.js";
import { WhatIfView } from "./what_if.js";

export const views = [
  { name: "cluster", title: "Cluster", component: ClusterView },
  { name: "queue", title: "Queue", component: QueueView, feature: "queue" },
  { name: "decision", title: "Decision", component: DecisionView, feature: ["explain", "attempts"] },
  { name: "what-if", title: "What if", component: WhatIfView, feature: "what-if" },
  { name: "time", title: "Time", component: TimeView, feature: "history" },
  { name: "health", title: "Health", component: HealthView, feature: "health" },
  { name: "shadow", title: "Shadow", component: ShadowView, feature: "comparisons" },
];
