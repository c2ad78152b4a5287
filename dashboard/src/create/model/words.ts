/** A command line as words and back, as Python's shlex reads and writes it. Pure. */

export type Split = { words: string[] } | { fault: "quote" | "escape" };

const BLANK = " \t\r\n";

/** No shell looks at the line: nothing is expanded, and `#` begins no comment. */
export function split(line: string): Split {
  const words: string[] = [];
  let word: string | null = null;
  let n = 0;
  while (n < line.length) {
    const letter = line.charAt(n);
    if (BLANK.includes(letter)) {
      if (word !== null) {
        words.push(word);
      }
      word = null;
      n += 1;
    } else if (letter === "\\") {
      if (n + 1 >= line.length) {
        return { fault: "escape" };
      }
      word = (word ?? "") + line.charAt(n + 1);
      n += 2;
    } else if (letter === "'" || letter === '"') {
      const quoted = letter === "'" ? single(line, n + 1) : double(line, n + 1);
      if (quoted === null) {
        return { fault: "quote" };
      }
      word = (word ?? "") + quoted.text;
      n = quoted.end;
    } else {
      word = (word ?? "") + letter;
      n += 1;
    }
  }
  return { words: word === null ? words : [...words, word] };
}

interface Quoted {
  text: string;
  end: number;
}

function single(line: string, begin: number): Quoted | null {
  const end = line.indexOf("'", begin);
  return end < 0 ? null : { text: line.slice(begin, end), end: end + 1 };
}

function double(line: string, begin: number): Quoted | null {
  const parts: string[] = [];
  let n = begin;
  while (n < line.length) {
    const letter = line.charAt(n);
    if (letter === '"') {
      return { text: parts.join(""), end: n + 1 };
    }
    const next = line.charAt(n + 1);
    if (letter === "\\" && (next === '"' || next === "\\")) {
      parts.push(next);
      n += 2;
    } else {
      parts.push(letter);
      n += 1;
    }
  }
  return null;
}

const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/;

export function join(words: readonly string[]): string {
  return words.map(quoted).join(" ");
}

function quoted(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

/** The text such that a kubelet, which reads `$(NAME)` and `$$`, makes it what it was. */
export const literal = (text: string): string => text.replaceAll("$", "$$$$");

/** What a kubelet makes of the text; null where it holds a `$` that `literal` would not write. */
export function unescaped(text: string): string | null {
  const plain = text.replaceAll("$$", "$");
  return literal(plain) === text ? plain : null;
}
