/** Texts of the log viewer. */
const count = (number: number, one: string) =>
  `${number.toLocaleString("en-US")} ${one}${number === 1 ? "" : "s"}`;

export const logs = {
  label: "Log lines",
  region: "Log lines, scroll for more",
  columns: { time: "Time", source: "Rank or pod", level: "Level", text: "Text" },
  levels: ["Debug", "Info", "Warning", "Error"] as const,
  levelMarks: ["D", "I", "W", "E"] as const,
  filters: "Filters",
  ranks: "Ranks",
  ranksExample: "All, or 0-3,7",
  ranksWrong: "Write numbers and ranges, such as 0-3,7.",
  pod: "Pod",
  allPods: "All pods",
  workersOwn: "Workers' own lines",
  workersOwnHelp: "Also what the pods of workers wrote themselves, such as their sshd.",
  least: "Severity",
  everyLevel: "All",
  atLeast: ["Debug and above", "Info and above", "Warnings and errors", "Errors"] as const,
  attempt: "Attempt",
  allAttempts: "All",
  attemptNumber: (attempt: number) => `Attempt ${attempt}`,
  from: "From",
  until: "Until",
  search: "Text",
  searchExample: "Lines that contain…",
  expression: "Regular expression",
  badExpression: (reason: string) => `No regular expression: ${reason}`,
  slowExpression:
    "This expression takes too long on some line. Write it without repetitions inside of repetitions.",
  bars: "Collapse progress bars",
  follow: "Follow",
  firstError: "First error",
  noError: "No line of these is an error.",
  notFound: "The line is not among those that are here.",
  exportText: "Export text",
  exportJson: "Export JSON",
  clear: "Clear filters",
  older: "Load earlier lines",
  loading: "Reading the log…",
  shown: (shown: number, all: number) =>
    shown === all
      ? count(all, "line")
      : `${shown.toLocaleString("en-US")} of ${count(all, "line")}`,
  searching: "searching…",
  live: "live",
  complete: "complete: the job has ended",
  polled: "asked for every 1.5 s",
  lost: (lines: number) =>
    `${count(lines, "line")} before this one ${lines === 1 ? "is" : "are"} gone`,
  skipped: (lines: number) =>
    `${count(lines, "line")} ${lines === 1 ? "was" : "were"} skipped: the job writes faster than this page reads`,
  dropped: (lines: number) =>
    `${count(lines, "earlier line")} ${lines === 1 ? "was" : "were"} given up to keep this page small. The whole log: odh mpijob logs.`,
  expand: "Show the whole line",
  collapse: "Show one row of the line",
  failed: "The log cannot be read",
  none: "Nothing is written yet",
  noneHelp: "Lines appear here as soon as the launcher or a rank writes something.",
  noneEnded: "This job has written nothing",
  noneEndedHelp: "Or its pods, and their logs with them, are gone.",
  noMatch: "No line is left by these filters",
};
