/** Short notices about what the user did; nothing else makes one. */
import { Alert, AlertActionCloseButton, AlertGroup } from "@patternfly/react-core";
import { createContext, type ReactNode, useCallback, useContext, useMemo, useState } from "react";
import { problemText } from "../components/ProblemAlert";
import { Said } from "../components/Said";
import { words } from "../words";

interface Toast {
  id: number;
  title: string;
  variant: "success" | "danger" | "info";
  body?: ReactNode;
}

interface Toasts {
  done: (title: string, body?: ReactNode) => void;
  failed: (title: string, error: unknown) => void;
}

const Context = createContext<Toasts | null>(null);

export function useToasts(): Toasts {
  const found = useContext(Context);
  if (!found) throw new Error("useToasts outside of ToastProvider");
  return found;
}

export function ToastProvider({ children }: { children: ReactNode }) {
  const [shown, setShown] = useState<readonly Toast[]>([]);
  const add = useCallback((toast: Omit<Toast, "id">) => {
    setShown((before) => [...before.slice(-4), { ...toast, id: (before.at(-1)?.id ?? 0) + 1 }]);
  }, []);
  const close = (id: number) => setShown((before) => before.filter((one) => one.id !== id));
  const toasts = useMemo<Toasts>(
    () => ({
      done: (title, body) => add({ title, body, variant: "success" }),
      failed: (title, error) =>
        add({ title, body: <Said>{problemText(error)}</Said>, variant: "danger" }),
    }),
    [add],
  );
  return (
    <Context.Provider value={toasts}>
      {children}
      <AlertGroup isToast isLiveRegion aria-label={words.shell.notices}>
        {shown.map((toast) => (
          <Alert
            component="p"
            key={toast.id}
            variant={toast.variant}
            title={toast.title}
            timeout={toast.variant === "danger" ? false : 8_000}
            onTimeout={() => close(toast.id)}
            actionClose={<AlertActionCloseButton onClose={() => close(toast.id)} />}
          >
            {toast.body}
          </Alert>
        ))}
      </AlertGroup>
    </Context.Provider>
  );
}
