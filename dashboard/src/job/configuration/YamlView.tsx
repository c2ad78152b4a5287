/**
 * YAML to read. Loaded when it is shown. In a shadow root the editor puts its styles into
 * `adoptedStyleSheets`, which our content security policy allows; elsewhere into a style element,
 * which it does not.
 */
import { yaml } from "@codemirror/lang-yaml";
import { codeFolding, foldGutter } from "@codemirror/language";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";

const LOOK: Extension = EditorView.theme({
  "&": {
    color: "var(--pf-t--global--text--color--regular)",
    backgroundColor: "var(--pf-t--global--background--color--primary--default)",
    border: "1px solid var(--pf-t--global--border--color--default)",
    maxHeight: "70vh",
    fontSize: "13px",
  },
  ".cm-scroller": { fontFamily: "var(--pf-t--global--font--family--mono)", overflow: "auto" },
  ".cm-gutters": {
    color: "var(--pf-t--global--text--color--subtle)",
    backgroundColor: "var(--pf-t--global--background--color--secondary--default)",
    border: "none",
  },
  "&.cm-focused": { outline: "2px solid var(--pf-t--global--border--color--clicked)" },
});

export default function YamlView({ text, label }: { text: string; label: string }) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    const view = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          codeFolding(),
          foldGutter(),
          yaml(),
          LOOK,
          EditorState.readOnly.of(true),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({
            "aria-label": label,
            "aria-readonly": "true",
            tabindex: "0",
          }),
        ],
      }),
    });
    return () => view.destroy();
  }, [text, label]);
  return <div ref={host} className="odh-yaml" />;
}
