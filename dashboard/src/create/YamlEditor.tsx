/**
 * The job as YAML, to edit. Loaded when it is shown. In a shadow root the editor puts its styles
 * into `adoptedStyleSheets`, which our content security policy allows; elsewhere into a style
 * element, which it does not.
 */
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { Annotation, EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";

const LOOK: Extension = EditorView.theme({
  "&": {
    color: "var(--pf-t--global--text--color--regular)",
    backgroundColor: "var(--pf-t--global--background--color--primary--default)",
    border: "1px solid var(--pf-t--global--border--color--control--default)",
    height: "100%",
    fontSize: "13px",
  },
  ".cm-scroller": { fontFamily: "var(--pf-t--global--font--family--mono)", overflow: "auto" },
  ".cm-gutters": {
    color: "var(--pf-t--global--text--color--subtle)",
    backgroundColor: "var(--pf-t--global--background--color--secondary--default)",
    border: "none",
  },
  ".cm-activeLine": { backgroundColor: "transparent" },
  ".cm-cursor": { borderLeftColor: "var(--pf-t--global--text--color--regular)" },
  ".cm-tooltip": {
    color: "var(--pf-t--global--text--color--regular)",
    backgroundColor: "var(--pf-t--global--background--color--floating--default)",
  },
  "&.cm-focused": { outline: "2px solid var(--pf-t--global--border--color--clicked)" },
});

const COLORS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], fontWeight: "bold" },
  { tag: tags.comment, color: "var(--pf-t--global--text--color--subtle)", fontStyle: "italic" },
]);

const OURS = Annotation.define<boolean>();

export interface Mark {
  readonly from: number;
  readonly severity: "error" | "warning";
  readonly message: string;
}

export default function YamlEditor({
  text,
  label,
  marks,
  onChange,
}: {
  text: string;
  label: string;
  marks: readonly Mark[];
  onChange: (text: string) => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const changed = useRef(onChange);
  changed.current = onChange;
  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({ extensions: extensions(label, (next) => changed.current(next)) }),
    });
    view.current = made;
    return () => {
      view.current = null;
      made.destroy();
    };
  }, [label]);
  useEffect(() => {
    if (view.current) show(view.current, text);
  }, [text]);
  useEffect(() => {
    if (view.current) mark(view.current, marks);
  }, [marks]);
  return <div ref={host} className="odh-create-editor" />;
}

function extensions(label: string, onChange: (text: string) => void): Extension {
  return [
    lineNumbers(),
    lintGutter(),
    history(),
    drawSelection(),
    indentOnInput(),
    highlightActiveLine(),
    syntaxHighlighting(COLORS),
    // Tab leaves the editor, as it leaves every field.
    keymap.of([...defaultKeymap, ...historyKeymap]),
    yaml(),
    LOOK,
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
    EditorView.updateListener.of((update) => {
      const ours = update.transactions.some((one) => one.annotation(OURS));
      if (update.docChanged && !ours) onChange(update.state.doc.toString());
    }),
  ];
}

/** The text in place of what is shown; only what differs is replaced, so that the cursor stays. */
function show(view: EditorView, text: string): void {
  const old = view.state.doc.toString();
  if (old === text) return;
  let from = 0;
  while (from < Math.min(old.length, text.length) && old[from] === text[from]) from += 1;
  let end = 0;
  const most = Math.min(old.length, text.length) - from;
  while (end < most && old[old.length - 1 - end] === text[text.length - 1 - end]) end += 1;
  view.dispatch({
    changes: { from, to: old.length - end, insert: text.slice(from, text.length - end) },
    annotations: OURS.of(true),
  });
}

function mark(view: EditorView, marks: readonly Mark[]): void {
  const { doc } = view.state;
  const diagnostics = marks.map(({ from, severity, message }): Diagnostic => {
    const line = doc.lineAt(Math.min(from, doc.length));
    return { from: Math.min(from, line.to), to: line.to, severity, message };
  });
  view.dispatch(setDiagnostics(view.state, diagnostics));
}
