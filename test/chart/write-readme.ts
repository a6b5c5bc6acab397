import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runHostCommand } from '../vm/host-command.ts';
import { chartReadme } from './chart-readme.ts';
import { CHART } from './render-chart.ts';

const file = join(CHART, 'README.md');
await writeFile(file, await chartReadme());
await runHostCommand(['npx', 'prettier', '--write', '--log-level', 'warn', file]);
