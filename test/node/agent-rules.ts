import { renderChart } from '../chart/render-chart.ts';
import type { Grants, PolicyRule } from '../cluster/service-account.ts';

/** What the chart lets the agent ask of the API server, and no more. */
export async function agentGrants(): Promise<Grants> {
  return await grantsOf('agent');
}

/** What the chart lets the debugger ask of the API server, and no more. */
export async function debuggerGrants(): Promise<Grants> {
  return await grantsOf('debugger', { debugger: { enabled: true } });
}

async function grantsOf(part: string, values: object = {}): Promise<Grants> {
  const rendered = await renderChart({ values });
  const rulesOf = (kind: string): readonly PolicyRule[] =>
    rendered
      .filter(({ template, object }) => template === `templates/${part}/rbac.yaml` && object.kind === kind)
      .flatMap(({ object }) => object['rules'] as readonly PolicyRule[]);
  return { rules: rulesOf('Role'), clusterRules: rulesOf('ClusterRole') };
}
