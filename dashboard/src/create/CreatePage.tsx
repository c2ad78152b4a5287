/** The page that makes a job: it finds out what to begin with, and shows the wizard. */
import { PageSection } from "@patternfly/react-core";
import { useState } from "react";
import { useSearchParams } from "react-router";
import { Loading } from "../app/Loading";
import { useOneNamespace } from "../app/namespace";
import { useAbout } from "../app/UserName";
import { PageHeading } from "../components/PageHeading";
import { ProblemAlert } from "../components/ProblemAlert";
import { words } from "../words";
import { forget, stored } from "./draft";
import { JobWizard } from "./JobWizard";
import { type Asked, useSource } from "./source";
import "./create.css";

export default function CreatePage() {
  const [search] = useSearchParams();
  const asked: Asked = {
    from: search.get("from") ?? "",
    runtime: search.get("runtime") ?? "",
    runtimeKind: search.get("kind") ?? "",
  };
  return <Begun key={Object.values(asked).join(" ")} asked={asked} />;
}

function Begun({ asked }: { asked: Asked }) {
  const key = Object.values(asked).join(" ");
  const [kept, setKept] = useState(() => stored(key));
  const [times, setTimes] = useState(0);
  const namespace = useOneNamespace();
  const about = useAbout();
  const local = about.data && about.data.backend === "local";
  const source = useSource(asked, namespace, local);
  const copyOf = source.data?.copyOf ?? "";
  const anew = () => {
    forget();
    setKept(null);
    setTimes((count) => count + 1);
  };
  return (
    <>
      <PageHeading
        title={words.create.title}
        about={copyOf ? words.create.cloneOf(copyOf) : words.create.about}
      />
      <PageSection hasBodyWrapper={false} isFilled>
        {source.isError && (
          <ProblemAlert
            title={words.create.sourceFailed}
            error={source.error}
            retry={() => void source.refetch()}
          />
        )}
        {source.data ? (
          <JobWizard
            key={`${times} ${copyOf}`}
            first={kept?.manifest ?? source.data.manifest}
            source={key}
            kept={kept}
            local={local === true}
            codeGone={source.data.codeGone ? copyOf : ""}
            anew={anew}
          />
        ) : (
          !source.isError && <Loading first={[about]} />
        )}
      </PageSection>
    </>
  );
}
