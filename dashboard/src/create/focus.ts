/** Bringing the reader to the field that is wrong, on whichever step it is. */
import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { isAbout } from "./model/problems";

/**
 * A function that focuses the field once it is on the page. The step is chosen by who asks: this
 * looks again until the field is there, for half a second.
 */
export function useFocusField(place: RefObject<HTMLElement | null>): (field: string) => void {
  const [wanted, setWanted] = useState<{ field: string } | null>(null);
  const timer = useRef<ReturnType<typeof setInterval>>();
  useEffect(() => {
    if (!wanted) return undefined;
    let left = 10;
    timer.current = setInterval(() => {
      left -= 1;
      const found = place.current && fieldIn(place.current, wanted.field);
      if (found) found.focus();
      if (found || left === 0) clearInterval(timer.current);
    }, 50);
    return () => clearInterval(timer.current);
  }, [wanted, place]);
  return useCallback((field: string) => setWanted({ field }), []);
}

function fieldIn(place: HTMLElement, field: string): HTMLElement | null {
  const inputs = [...place.querySelectorAll<HTMLElement>("[data-field]")];
  const names = (one: HTMLElement) => (one.dataset.field ?? "").split(" ").filter(Boolean);
  const problem = { field, text: "", level: "error" as const };
  return inputs.find((one) => names(one).some((name) => isAbout(problem, name))) ?? null;
}
