import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import protobuf from 'protobufjs';

const SOURCES = ['agent.proto', 'health.proto'].map(
  (name) => new URL(`../../proto/${name}`, import.meta.url),
);
const TARGET = new URL('gen/descriptor.ts', import.meta.url);

/** The text of `gen/descriptor.ts`: the messages of the .proto files as a protobufjs descriptor. */
export function generateDescriptor(): string {
  const root = new protobuf.Root();
  root.addJSON(protobuf.common.get('google/protobuf/timestamp.proto')?.nested ?? {});
  for (const source of SOURCES) protobuf.parse(readFileSync(source, 'utf8'), root);
  root.resolveAll();
  const json = JSON.stringify(root.toJSON(), null, 2);
  return `// Generated from proto/agent.proto and proto/health.proto by rpc/src/generate.ts.\nexport const descriptor = ${json};\n`;
}

/** True if the committed descriptor is what the .proto files give. */
export function descriptorIsCurrent(): boolean {
  return readFileSync(TARGET, 'utf8') === generateDescriptor();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  if (process.argv.includes('--check')) {
    if (!descriptorIsCurrent()) {
      console.error('rpc/src/gen/descriptor.ts is not current: run `node rpc/src/generate.ts`');
      process.exitCode = 1;
    }
  } else {
    writeFileSync(TARGET, generateDescriptor());
  }
}
