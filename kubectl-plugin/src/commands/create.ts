import { quote } from '@runtime-enforcer/api/field-error';
import { API_VERSION } from '@runtime-enforcer/api/keys';
import { workloadPolicyObject } from '@runtime-enforcer/api/resource-object';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import { readYaml } from '@runtime-enforcer/api/yaml-document';
import { isAlreadyExists } from '@runtime-enforcer/kube/api-error';
import { collectionPath } from '@runtime-enforcer/kube/resource-path';
import { POLICIES, typeName } from '../cluster/objects.ts';
import { dryRunOf, type RunCommand } from '../command-context.ts';
import { EXIT_OK } from '../exit-code.ts';
import { readInput } from '../input-file.ts';
import { textAt } from '../output/json-field.ts';
import { named } from '../output/named.ts';
import { parseOutputFormat } from '../output/output-format.ts';
import { printData } from '../output/print.ts';
import { PluginError, UsageError } from '../plugin-error.ts';
import { readPolicies } from './compare.ts';

/** `policy create -f FILE`: creates every policy of a file, after all of them have been checked. */
export const createPolicies: RunCommand = async ({ terminal, flags, connect }, _operands, options) => {
  const file = options.text('filename');
  if (file === undefined)
    throw new UsageError('policy create needs --filename FILE', 'use -f - for standard input');
  const format = parseOutputFormat(options.text('output') ?? 'name', ['name', 'json', 'yaml']);
  const dryRun = dryRunOf(options);
  const content = await readInput(file);
  const policies = readPolicies(file, content);
  const namespaces = writtenNamespaces(content);
  const connection = await connect({ dryRun: dryRun === 'server' });
  const { client, namespace } = connection;
  const placed = policies.map((policy, index) =>
    objectIn(policy, namespaceFor(namespaces[index] ?? '', flags.namespace, namespace)),
  );
  for (const object of placed) {
    const place = { namespace: object.metadata.namespace, name: object.metadata.name };
    let created: unknown = object;
    if (dryRun !== 'client') {
      try {
        created = await client.request({
          method: 'POST',
          path: collectionPath(POLICIES, place.namespace),
          query: { fieldValidation: 'Strict' },
          body: object,
        });
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
        throw new PluginError(
          `${named('WorkloadPolicy', place)} already exists`,
          `see what would change: kubectl runtime-enforcer policy diff ${place.name} -f ${file}`,
          { cause: error },
        );
      }
    }
    if (format.kind === 'json' || format.kind === 'yaml')
      printData(terminal, format, created as typeof object);
    else {
      const how = dryRun === 'none' ? '' : ` (${dryRun} dry run)`;
      terminal.write(`${typeName(POLICIES)}/${place.name} created${how}\n`);
    }
  }
  return EXIT_OK;
};

/** The namespaces as the documents write them: the parsed policies have `default` where nothing is written. */
function writtenNamespaces(content: Uint8Array): readonly string[] {
  const yaml = readYaml(content);
  return yaml.ok ? yaml.documents.map(({ data }) => textAt(data, 'metadata', 'namespace')) : [];
}

function namespaceFor(written: string, flag: string | undefined, current: string): string {
  if (written === '' || written === flag) return flag ?? current;
  if (flag === undefined) return written;
  throw new UsageError(
    `the file says namespace ${quote(written)}, and --namespace says ${quote(flag)}`,
    'leave one of them out',
  );
}

function objectIn(policy: WorkloadPolicy, namespace: string) {
  const { metadata, spec } = policy;
  const { name, labels, annotations } = metadata;
  const plain = workloadPolicyObject({
    metadata: { name, namespace, labels, annotations, ownerReferences: [] },
    spec,
  });
  return {
    ...plain,
    apiVersion: API_VERSION,
    metadata: { ...(plain['metadata'] as Record<string, unknown>), name, namespace },
  };
}
