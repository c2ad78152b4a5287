import "@patternfly/react-core/dist/styles/base.css";
import "./app/app.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { watchNetwork } from "./api/connection";
import { App } from "./app/App";
import { applyTheme, storedTheme } from "./app/theme";

watchNetwork();
applyTheme(storedTheme());
const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
