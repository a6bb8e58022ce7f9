// All texts of the page, in English. Views take theirs from here, by the name of the view.
export const texts = {
  product: "moorage",
  skip: "Skip to the content",
  views: "Views",
  loading: "Loading …",
  theme: { light: "Light", dark: "Dark", toggle: "Change between light and dark" },
  shortcuts: {
    title: "Keyboard",
    show: "Keyboard shortcuts",
    close: "Close",
    rows: [
      ["1 … 6", "go to a view"],
      ["/", "search"],
      ["t", "light or dark"],
      ["?", "these shortcuts"],
      ["Esc", "close what is open"],
    ],
  },
  connection: {
    live: "live",
    ended: "not live: shown is a file",
    waiting: "connecting …",
    lost: "the connection is lost; trying again",
  },
  denied: {
    title: "This address has no valid token",
    text: "Open the address that the command printed: it ends with ?token=… A token is valid as long as its command runs.",
  },
  failed: { title: "The page cannot be shown", retry: "Try again" },
  unknownView: "There is no such view.",
  units: { cpu: "cores", pods: "pods" },
};
