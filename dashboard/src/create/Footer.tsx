/** The buttons below each step. Whoever submits a job with errors is brought to the first one. */
import {
  ActionList,
  ActionListGroup,
  ActionListItem,
  Button,
  Tooltip,
  useWizardContext,
  WizardFooterWrapper,
} from "@patternfly/react-core";
import { useEffect } from "react";
import { useNavigate } from "react-router";
import { paths } from "../app/paths";
import { usePermissions } from "../app/permissions";
import { words } from "../words";
import { isTrainJob, useForm } from "./context";
import { type Problem, stepOf } from "./model/problems";
import type { Submission } from "./useSubmit";

const said = words.create;

export function Footer({
  submission,
  errors,
  onStep,
  onRefused,
}: {
  submission: Submission;
  errors: readonly Problem[];
  /** Called when another step is shown, however it was reached. */
  onStep: (index: number, name: string) => void;
  onRefused: (field: string) => void;
}) {
  const { manifest, namespace, draft, files, checked } = useForm();
  const { activeStep, goToNextStep, goToPrevStep, goToStepById } = useWizardContext();
  const navigate = useNavigate();
  useEffect(() => onStep(activeStep.index, String(activeStep.id)), [activeStep, onStep]);
  const action = isTrainJob(manifest) ? "create-trainjobs" : "create-mpijobs";
  const may = usePermissions(namespace)(action);
  const last = activeStep.id === "review";
  const show = (problems: readonly Problem[]) => {
    const [first] = problems.filter((one) => one.level === "error");
    const step = first ? stepOf(first.field) : "review";
    goToStepById(step);
    onRefused(first?.field ?? "");
  };
  const submit = async () => {
    if (checked.of === manifest && errors.length > 0) return show(errors);
    const refused = await submission.submit(namespace, manifest, files);
    if (refused) show(refused);
  };
  const blocked = !may.allowed || draft.fault !== null;
  const create = (
    <Button
      variant="primary"
      isAriaDisabled={blocked}
      isLoading={submission.busy}
      isDisabled={submission.busy}
      spinnerAriaLabel={said.submitting}
      onClick={() => {
        if (!blocked) void submit();
      }}
    >
      {said.submit}
    </Button>
  );
  return (
    <WizardFooterWrapper>
      <ActionList>
        <ActionListGroup>
          <ActionListItem>
            <Button
              variant="secondary"
              onClick={() => goToPrevStep()}
              isDisabled={activeStep.index === 1}
            >
              {said.back}
            </Button>
          </ActionListItem>
          {!last && (
            <ActionListItem>
              <Button variant="primary" onClick={() => goToNextStep()}>
                {said.next}
              </Button>
            </ActionListItem>
          )}
          {!last && (
            <ActionListItem>
              <Button variant="secondary" onClick={() => goToStepById("review")}>
                {said.toReview}
              </Button>
            </ActionListItem>
          )}
          {last && (
            <ActionListItem>
              {may.allowed ? create : <Tooltip content={may.reason}>{create}</Tooltip>}
            </ActionListItem>
          )}
        </ActionListGroup>
        <ActionListGroup>
          <ActionListItem>
            <Button variant="link" onClick={() => void navigate(paths.jobs)}>
              {said.cancel}
            </Button>
          </ActionListItem>
        </ActionListGroup>
      </ActionList>
    </WizardFooterWrapper>
  );
}
