import { textAt } from '../output/json-field.ts';
import type { RunCommand } from '../command-context.ts';
import { findComponents, imagesOf } from '../cluster/components.ts';
import { reportError } from '../error-text.ts';
import { EXIT_ERROR, EXIT_OK } from '../exit-code.ts';
import { parseOutputFormat } from '../output/output-format.ts';
import { printData } from '../output/print.ts';
import { PLUGIN_VERSION } from '../plugin-version.ts';
import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';

/** `version`: of the plugin, the API server, and the components' images. */
export const version: RunCommand = async ({ terminal, connect }, _operands, options) => {
  const format = parseOutputFormat(options.text('output'), ['table', 'json', 'yaml', 'jsonpath']);
  const client = {
    version: PLUGIN_VERSION,
    node: process.version,
    platform: `${process.platform}/${process.arch}`,
  };
  if (options.flag('client')) {
    if (format.kind === 'table') terminal.write(`Client: ${PLUGIN_VERSION}\n`);
    else if (format.kind !== 'name') printData(terminal, format, { client });
    return EXIT_OK;
  }
  let server = '';
  let components: readonly { readonly component: string; readonly images: readonly string[] }[] = [];
  let problem: string | undefined;
  try {
    const connection = await connect();
    server = textAt(await connection.client.request({ path: '/version' }), 'gitVersion');
    const found = await findComponents(connection.client);
    components = found.map(({ component, pods }) => ({ component, images: imagesOf(pods) }));
  } catch (error) {
    problem = reportError(error).text;
  }
  if (format.kind !== 'table' && format.kind !== 'name') {
    printData(terminal, format, { client, server: { version: server }, components });
  } else {
    terminal.write(`Client: ${PLUGIN_VERSION}\n`);
    if (server !== '') terminal.write(`Kubernetes: ${escapeUnprintable(server)}\n`);
    for (const { component, images } of components) {
      const shown = images.map((image) => escapeUnprintable(image)).join(', ');
      terminal.write(`${component}: ${shown === '' ? 'not found' : shown}\n`);
    }
  }
  if (problem === undefined) return EXIT_OK;
  terminal.note(problem);
  return EXIT_ERROR;
};
