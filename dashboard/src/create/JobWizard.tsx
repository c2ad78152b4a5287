/** The steps of a new job, and its YAML beside them. */
import { Alert, AlertActionLink, Wizard, WizardStep } from "@patternfly/react-core";
import { useCallback, useMemo, useRef, useState } from "react";
import { useOneNamespace } from "../app/namespace";
import { words } from "../words";
import { Advanced } from "./Advanced";
import { Basics } from "./Basics";
import { type Form, FormContext, showable, useForm } from "./context";
import { type Stored, useDraft, useStored } from "./draft";
import { Footer } from "./Footer";
import { useFocusField } from "./focus";
import { type JsonObject, textAt } from "./model/json";
import { type Problem, STEPS, type Step, stepOf } from "./model/problems";
import * as trainjob from "./model/trainjob";
import { Program } from "./Program";
import { Resources } from "./Resources";
import { Review } from "./Review";
import { Start } from "./Start";
import { refusal, type Upload, useCheck, useRuntimes } from "./server";
import { type Submission, useSubmit } from "./useSubmit";
import { YamlPane } from "./YamlPane";

const said = words.create.steps;
const NOBODY: readonly Problem[] = [];

export interface Given {
  readonly first: JsonObject;
  readonly source: string;
  readonly kept: Stored | null;
  readonly local: boolean;
  /** The job whose code does not come along; empty where there is none. */
  readonly codeGone: string;
  readonly anew: () => void;
}

/** The form that all steps share, and what happens when it is submitted. */
function useJobForm({ first, source, kept, local }: Given) {
  const { draft, begin, edit, type } = useDraft(() => first);
  const [step, setStep] = useState(kept?.step ?? 1);
  const [seen, setSeen] = useState<ReadonlySet<string>>(new Set());
  const [seeAll, setSeeAll] = useState(false);
  const [files, setFiles] = useState<readonly Upload[]>([]);
  const chosen = useOneNamespace();
  const namespace = textAt(draft.manifest, ["metadata", "namespace"]) || chosen;
  const found = useRuntimes(namespace).data;
  const checked = useCheck(namespace, draft.manifest, draft.fault === null);
  const submission = useSubmit();
  useStored(source, draft, step);
  const see = useCallback((field: string) => {
    setSeen((before) => (before.has(field) ? before : new Set([...before, field])));
  }, []);
  const refused = useMemo(
    () => (submission.of === draft.manifest ? (refusal(submission.failure) ?? NOBODY) : NOBODY),
    [submission.of, submission.failure, draft.manifest],
  );
  const runtimes = found ?? [];
  const named = textAt(draft.manifest, trainjob.RUNTIME);
  const kind = textAt(draft.manifest, trainjob.RUNTIME_KIND);
  const runtime =
    runtimes.find((one) => one.name === named && (!kind || one.kind === kind)) ?? null;
  const form: Form = {
    draft,
    manifest: draft.manifest,
    namespace,
    edit,
    type,
    local,
    checked,
    refused,
    seen,
    see,
    seeAll,
    files,
    setFiles,
    runtimes,
    runtime,
  };
  return { form, begin, step, setStep, setSeeAll, submission };
}

export function JobWizard(given: Given) {
  const { form, begin, step, setStep, setSeeAll, submission } = useJobForm(given);
  const [template, setTemplate] = useState(given.source.trim() || given.kept ? "" : "hello");
  const [first] = useState(step);
  const place = useRef<HTMLDivElement>(null);
  const focus = useFocusField(place);
  const errors = [...form.refused, ...form.checked.problems].filter((one) => one.level === "error");
  const status = (name: Step) =>
    form.seeAll && errors.some((one) => stepOf(one.field) === name) ? "error" : "default";
  const onStep = useCallback(
    (index: number, name: string) => {
      setStep(index);
      if (name === "review") setSeeAll(true);
    },
    [setStep, setSeeAll],
  );
  const footer = (
    <Footer
      submission={submission}
      errors={errors}
      onStep={onStep}
      onRefused={(field) => {
        setSeeAll(true);
        focus(field);
      }}
    />
  );
  const body = (name: Step) => {
    if (name === "start") return <Start begin={begin} chosen={template} choose={setTemplate} />;
    if (name === "review") return <ReviewStep submission={submission} focus={focus} />;
    if (!showable(form.manifest))
      return <Alert component="p" isInline variant="info" title={words.create.yaml.other} />;
    const shown = { basics: Basics, program: Program, resources: Resources, advanced: Advanced };
    const Shown = shown[name];
    return <Shown />;
  };
  return (
    <FormContext.Provider value={form}>
      <Notices given={given} />
      <div className="odh-create" ref={place}>
        <Wizard
          navAriaLabel={said.label}
          startIndex={first}
          height="auto"
          footer={footer}
          shouldFocusContent
        >
          {STEPS.map((name) => (
            <WizardStep key={name} id={name} name={said[name]} status={status(name)}>
              {body(name)}
            </WizardStep>
          ))}
        </Wizard>
        <YamlPane />
      </div>
    </FormContext.Provider>
  );
}

function ReviewStep({
  submission,
  focus,
}: {
  submission: Submission;
  focus: (field: string) => void;
}) {
  const { manifest } = useForm();
  return <Review focus={focus} failure={submission.of === manifest ? submission.failure : null} />;
}

function Notices({ given }: { given: Given }) {
  const said = words.create.start;
  const { kept } = given;
  return (
    <>
      {kept && (
        <Alert
          component="p"
          isInline
          variant={kept.left ? "warning" : "info"}
          title={said.restored}
          actionLinks={<AlertActionLink onClick={given.anew}>{said.anew}</AlertActionLink>}
        >
          {kept.left ? said.restoredSecrets : said.restoredHint}
        </Alert>
      )}
      {given.codeGone && (
        <Alert
          component="p"
          isInline
          variant="warning"
          title={words.create.program.codeGone(given.codeGone)}
        />
      )}
    </>
  );
}
