// @vitest-environment node
// CTL-15: the same results as the Python side, which reads the same table.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { mpiCommand, startsRanks, wrapped } from "./mpiCommand";
import { join, literal, split, unescaped } from "./words";

interface Table {
  startRanks: string[][];
  doNot: string[][];
  lines: [string, string[] | null][];
}
const file = new URL("../../../../tests/unit/layout/commands.json", import.meta.url);
const table = JSON.parse(readFileSync(file, "utf8")) as Table;

describe("a command that starts ranks is left alone", () => {
  test.each(table.startRanks.map((command) => [command]))("%j", (command) => {
    expect(startsRanks(command)).toBe(true);
    expect(mpiCommand(command, 8)).toEqual(command);
  });
});

describe("any other command is started once per slot", () => {
  test.each(table.doNot.map((command) => [command]))("%j", (command) => {
    expect(startsRanks(command)).toBe(false);
    expect(mpiCommand(command, 8)).toEqual(["mpirun", "-n", "8", ...command]);
  });
});

describe("a line is split as Python splits it", () => {
  test.each(table.lines)("%j", (line, words) => {
    const found = split(line);
    expect("words" in found ? found.words : null).toEqual(words);
  });
});

test("words that are joined are the same words when they are split again", () => {
  const odd = ["", "a b", "it's", 'say "x"', "$HOME", "a\\b", "tab\there", "new\nline", "😀", "#"];
  expect(split(join(odd))).toEqual({ words: odd });
  for (const command of [...table.startRanks, ...table.doNot]) {
    expect(split(join(command))).toEqual({ words: command });
  }
});

test("what is wrapped is shown without its mpirun, and only that", () => {
  expect(wrapped(["mpirun", "-n", "4", "python", "train.py"], 4)).toEqual(["python", "train.py"]);
  expect(wrapped(["mpirun", "-n", "3", "python", "train.py"], 4)).toBeNull();
  expect(wrapped(["mpirun", "-n", "4", "--bind-to", "none", "x"], 4)).toBeNull();
  expect(wrapped(["mpirun", "-n", "4"], 4)).toBeNull();
  expect(wrapped(["mpirun", "-n", "4", "mpirun", "x"], 4)).toBeNull();
});

test("a dollar is doubled for the kubelet, and what was not doubled is not taken for it", () => {
  expect(literal("echo $HOME $(x)")).toBe("echo $$HOME $$(x)");
  expect(unescaped("echo $$HOME $$(x)")).toBe("echo $HOME $(x)");
  expect(unescaped("echo $HOME")).toBeNull();
  expect(unescaped("$$$")).toBeNull();
});
