import { render } from "@testing-library/react";
import { expect, test } from "vitest";
import { Said } from "./Said";

test.each([
  ["plain", "plain"],
  ["run `odh list`.", "run <code>odh list</code>."],
  ["`a` and `b`", "<code>a</code> and <code>b</code>"],
  ["one ` alone", "one ` alone"],
  ["<b>`<i>`", "&lt;b&gt;<code>&lt;i&gt;</code>"],
])("%s", (text, html) => {
  expect(render(<Said>{text}</Said>).container.innerHTML).toBe(html);
});
