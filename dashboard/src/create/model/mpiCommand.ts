/**
 * How a command becomes an MPI run (CTL-15), exactly as CLI and SDK do it.
 *
 * A command that starts ranks by itself is left alone; any other is started once per slot. The
 * cases that must agree are in tests/unit/layout/commands.json.
 */

const LAUNCHERS = new Set([
  "mpirun",
  "mpiexec",
  "mpiexec.hydra",
  "mpirun.openmpi",
  "mpirun.mpich",
  "mpiexec.openmpi",
  "mpiexec.mpich",
  "orterun",
  "prterun",
  "prun",
  "horovodrun",
  "deepspeed",
]);
const SHELLS = new Set(["sh", "bash", "dash", "ash", "zsh", "ksh"]);

/** Words that only start another command, each with its options that take a word of their own. */
const PREFIXES = new Map<string, readonly string[]>([
  ["env", ["-u", "-C"]],
  ["nice", ["-n"]],
  ["stdbuf", ["-i", "-o", "-e"]],
  ["time", ["-f", "-o"]],
  ["timeout", ["-k", "-s"]],
  ...["nohup", "setsid", "command", "exec"].map((name): [string, string[]] => [name, []]),
  ...["!", "if", "then", "elif", "else", "while", "until", "do"].map((name): [string, string[]] => [
    name,
    [],
  ]),
]);
const OPTION_SETTING_OR_TIME = /^(?:-.*|[A-Za-z_][\p{L}\p{N}_]*=.*|\p{Nd}[\p{Nd}.]*[smhd]?)$/su;
const SHELL_LINE_FOLLOWS = /^-[A-Za-z]*c[A-Za-z]*$/;
const SHELL_OPTION_NAME_FOLLOWS = /^(?:[-+][A-Za-z]*[oO]|--rcfile|--init-file)$/;
const QUOTED_OR_COMMENT = /"([^"]*)"|'([^']*)'|(?:(?<![^\n])|(?<=\s))#[^\n]*/g;
const BETWEEN_COMMANDS = /[;&|(){}`\n]+/;
const WITHIN_QUOTES = /[\s;&|(){}`]/g;

/** Whether the command is an MPI launcher, or a shell line that calls one; read roughly. */
export function startsRanks(command: readonly string[]): boolean {
  const bare = withoutPrefixes(command);
  const [first, ...rest] = bare;
  if (first === undefined) {
    return false;
  }
  const program = baseName(first);
  if (SHELLS.has(program)) {
    return simpleCommands(shellLine(rest)).some(startsRanks);
  }
  return LAUNCHERS.has(program);
}

/** The command as an MPI run over `ranks` ranks; the same command where it is one already. */
export function mpiCommand(command: readonly string[], ranks: number): string[] {
  return startsRanks(command) ? [...command] : ["mpirun", "-n", String(ranks), ...command];
}

/** The program's own words, where the command is what `mpiCommand` makes of them; else null. */
export function wrapped(command: readonly string[], ranks: number): string[] | null {
  const [program, option, count, ...rest] = command;
  const begins = program === "mpirun" && option === "-n" && count === String(ranks);
  return begins && rest.length > 0 && !rest[0]?.startsWith("-") && !startsRanks(rest) ? rest : null;
}

function baseName(word: string): string {
  return (
    word
      .split("/")
      .filter((part) => part !== "" && part !== ".")
      .at(-1) ?? ""
  );
}

function withoutPrefixes(command: readonly string[]): string[] {
  let words = [...command];
  for (;;) {
    const options = words[0] === undefined ? undefined : PREFIXES.get(baseName(words[0]));
    if (options === undefined) {
      return words;
    }
    words = words.slice(1);
    while (words[0] !== undefined && OPTION_SETTING_OR_TIME.test(words[0])) {
      words = words.slice(options.includes(words[0]) ? 2 : 1);
    }
  }
}

/** The line that a shell is given with -c; nothing where it runs a script. */
function shellLine(words: readonly string[]): string {
  for (let n = 0; n < words.length; n += 1) {
    const word = words[n] ?? "";
    if (SHELL_LINE_FOLLOWS.test(word)) {
      return words[n + 1] ?? "";
    }
    if (SHELL_OPTION_NAME_FOLLOWS.test(word)) {
      n += 1;
    } else if (!word.startsWith("-") && !word.startsWith("+")) {
      break;
    }
  }
  return "";
}

/** The commands in a shell line, each behind `env` because settings may stand before it. */
function simpleCommands(line: string): string[][] {
  const plain = line
    .replaceAll("\\\n", " ")
    .replace(QUOTED_OR_COMMENT, (_all, inDouble?: string, inSingle?: string) =>
      (inDouble || inSingle || "").replace(WITHIN_QUOTES, "_"),
    );
  return plain
    .split(BETWEEN_COMMANDS)
    .map((part) => ["env", ...part.split(/\s+/).filter((word) => word !== "")]);
}
