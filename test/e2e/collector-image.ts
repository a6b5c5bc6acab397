import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hostArchitecture } from '../../images/architecture.ts';
import { imageLayer, ociImage } from '../../images/oci-image.ts';
import { collectorBinary } from '../telemetry/collector-binary.ts';
import type { ImageTar } from '../vm/image-import.ts';
import { printProgress } from '../vm/progress.ts';

export const COLLECTOR_REPOSITORY = 'test.local/opentelemetry-collector';
export const COLLECTOR_TAG = '1';

/** The collector of the bundled configuration as an image of one program. */
export async function collectorImage(directory: string): Promise<ImageTar> {
  const ref = `${COLLECTOR_REPOSITORY}:${COLLECTOR_TAG}`;
  const content = await readFile(await collectorBinary(printProgress));
  const layer = imageLayer([{ kind: 'file', path: 'otelcol', mode: 0o755, content }], 'none');
  const { tar } = ociImage(ref, hostArchitecture(), [layer], { entrypoint: ['/otelcol'], path: '/' });
  const tarPath = join(directory, 'collector.oci.tar');
  await writeFile(tarPath, tar);
  return { ref, tarPath };
}
