export const shell = {
  product: "Distributed training",
  pages: "Pages",
  main: "Content",
  skip: "Skip to content",
  navigation: "Navigation",
  loading: "Loading",
  unanswered: "This page could not be loaded",
  notices: "Notices",
  nav: {
    home: "Home",
    jobs: "Jobs",
    create: "Create job",
    runtimes: "Runtimes",
    queues: "Queues",
    compare: "Compare jobs",
  },
  namespaces: "Projects",
  allNamespaces: "All projects",
  namespace: (name: string) => `Project: ${name}`,
  searchNamespaces: "Search, or type a project's name",
  openNamespace: (name: string) => `Open project ${name}`,
  theme: {
    label: "Colors and contrast",
    colors: "Colors",
    system: "As the system",
    light: "Light",
    dark: "Dark",
    contrast: "Contrast",
    high: "High contrast",
  },
  thisMachine: "This machine",
  backend: (name: string) => (name === "local" ? "Jobs of this machine" : `Cluster ${name}`),
  missingRight: (action: string, namespace: string) =>
    `You may not ${action.replace("-", " ")} in ${namespace}. Ask its administrator.`,
  connection: {
    server: {
      reconnecting: "Reconnecting to the server…",
      stale: (time: string) => `The server does not answer: this page is as of ${time}`,
      staleHint: "What is shown may have changed since. The page tries again by itself.",
    },
    cluster: {
      reconnecting: "The cluster does not answer; asking again…",
      stale: (time: string) => `The cluster does not answer: this page is as of ${time}`,
      staleHint:
        "Jobs go on without it, and what is shown may have changed since. The page tries again by itself.",
    },
    loggedOut: "You are no longer logged in",
    loggedOutHint:
      "On your own machine, open the address that odh dashboard printed last. On a cluster, reload this page to log in.",
  },
  notFound: "There is no such page",
  toJobs: "All jobs",
  fault: "This page has a fault",
  reload: "Reload the page",
  copy: "Copy",
  copied: "Copied",
  command: "Command",
};

export const states = {
  Created: "Created",
  Running: "Running",
  Restarting: "Restarting",
  Suspended: "Suspended",
  Succeeded: "Succeeded",
  Failed: "Failed",
};

export const problems = {
  gone: "The server does not answer. If it was odh dashboard on your machine, start it again.",
  retry: "Try again",
};
