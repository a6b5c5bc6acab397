import { escapeInQuotes } from '@runtime-enforcer/api/printable-text';
import type { AgentCache } from './agent-cache.ts';
import { type Difference, differenceText } from './difference.ts';
import { type ClusterReport, isAligned } from './node-report.ts';

/**
 * A report for programs: one line of JSON, safe to print. Numbers of 64 bits are texts, as in the JSON form of
 * protocol buffers.
 */
export function reportJson(report: ClusterReport): string {
  const { time, nodes, agentCaches, reports } = report;
  const document = {
    ...{ time, nodes, agentCaches, aligned: isAligned(report) },
    reports: reports.map(({ differences, remarks, cache, ...node }) => ({
      ...node,
      differences: differences.map(withText),
      remarks: remarks.map(withText),
      ...(cache !== undefined && { cache: plainCache(cache) }),
    })),
  };
  return `${escapeInQuotes(JSON.stringify(document, bigIntAsText))}\n`;
}

function withText(difference: Difference) {
  return { ...difference, text: differenceText(difference) };
}

function plainCache({ pods, bindings }: AgentCache) {
  return {
    pods: pods.map(({ labels, ...pod }) => ({ ...pod, labels: Object.fromEntries(labels) })),
    ...(typeof bindings !== 'string' && { bindings }),
  };
}

function bigIntAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
