import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isJsonObject } from '@runtime-enforcer/kube/kube-object';
import { parse } from 'yaml';
import { CHART } from './render-chart.ts';

/** A value of the chart, as its README tells it. */
interface Value {
  readonly name: string;
  readonly standard: unknown;
  readonly description: string;
}

interface SchemaNode {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly enum?: readonly unknown[];
}

const INTRODUCTION = `# runtime-enforcer

The Helm chart of Runtime Enforcer. [Installation](../../docs/install.md), [upgrades](../../docs/upgrade.md) and
[uninstallation](../../docs/uninstall.md) are described there; the [runbooks](../../docs/runbooks.md) are those of its
alerts.

\`\`\`text
helm install runtime-enforcer charts/runtime-enforcer -n runtime-enforcer --create-namespace
\`\`\`

## Values

This table is made of \`values.yaml\` and \`values.schema.json\` by \`npm run chart:readme\`. Keys that are not in it are
refused.
`;

/** What README.md of the chart is to be, by its values and their schema. */
export async function chartReadme(): Promise<string> {
  const [values, schema] = await Promise.all(
    ['values.yaml', 'values.schema.json'].map(
      async (name) => parse(await readFile(join(CHART, name), 'utf8')) as unknown,
    ),
  );
  const rows = [...valuesOf(schema as SchemaNode, values, '')].map(
    ({ name, standard, description }) =>
      `| \`${name}\` | ${standard === undefined ? '' : `\`${cell(JSON.stringify(standard))}\``} | ${cell(description)} |`,
  );
  return `${INTRODUCTION}\n${['| value | default | meaning |', '| --- | --- | --- |', ...rows].join('\n')}\n`;
}

/** Groups are walked into; what has no properties of its own is one value. */
function* valuesOf(node: SchemaNode, standard: unknown, path: string): Generator<Value> {
  for (const [key, property] of Object.entries(node.properties ?? {})) {
    const name = path === '' ? key : `${path}.${key}`;
    const given = isJsonObject(standard) ? standard[key] : undefined;
    if (property.properties !== undefined) {
      yield* valuesOf(property, given, name);
      continue;
    }
    const words = property.enum?.map((word) => `\`${String(word)}\``).join(', ');
    const description = `${property.description ?? ''}${words === undefined ? '' : ` One of ${words}.`}`;
    yield { name, standard: given, description };
  }
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
