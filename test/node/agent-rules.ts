import { renderChart } from '../chart/render-chart.ts';
import type { Grants, PolicyRule } from '../cluster/service-account.ts';

/** What the chart lets the agent ask of the API server, and no more. */
export async function agentGrants(): Promise<Grants> {
  const rendered = await renderChart();
  const rulesOf = (kind: string): readonly PolicyRule[] =>
    rendered
      .filter(({ template, object }) => template === 'templates/agent/rbac.yaml' && object.kind === kind)
      .flatMap(({ object }) => object['rules'] as readonly PolicyRule[]);
  return { rules: rulesOf('Role'), clusterRules: rulesOf('ClusterRole') };
}
