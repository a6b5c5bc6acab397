import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from '../src/tree/root.ts';
import { withReference } from './command-reference.ts';

const DOCUMENT = join(import.meta.dirname, '../../docs/plugin.md');

await writeFile(DOCUMENT, withReference(await readFile(DOCUMENT, 'utf8'), ROOT));
