/** A link to a job in the Grafana that the server names. Pure. */

/** Empty where the server names none, or what is no page: it must never run in this one. */
export function grafanaOf(
  address: string,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): string {
  if (!/^https?:\/\//.test(address)) return "";
  const query = new URLSearchParams({ "var-namespace": namespace, "var-mpijob": name });
  return `${address}?${query}`;
}
