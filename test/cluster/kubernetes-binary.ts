import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Asset, cachedAsset, contentKey } from '../vm/cache.ts';
import { runHostCommand } from '../vm/host-command.ts';
import type { Progress } from '../vm/progress.ts';
import { goToolchain } from './go-toolchain.ts';

/** The newest Kubernetes that the product is tested with. */
export const KUBERNETES_VERSION = '1.36.3';
/** Names another Kubernetes to run the tests against. */
export const KUBERNETES_VARIABLE = 'RUNTIME_ENFORCER_KUBERNETES';

/** The version of the Kubernetes whose programs the tests run against, such as `1.36.3`. */
export function testedKubernetesVersion(): string {
  return process.env[KUBERNETES_VARIABLE] ?? KUBERNETES_VERSION;
}

/** The second part of {@link testedKubernetesVersion}, such as 36. */
export function testedKubernetesMinor(): number {
  return Number(testedKubernetesVersion().split('.')[1]);
}

export type KubernetesProgram =
  'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler' | 'kubectl' | 'kubelet';

const MODULE = 'k8s.io/kubernetes';
const RECIPE = '1';

interface GoModule {
  readonly Go: string;
  readonly Replace: readonly {
    readonly Old: { readonly Path: string };
    readonly New: { readonly Path: string };
  }[];
}

/**
 * A program of Kubernetes, built from its Go module: minutes the first time, nothing afterwards.
 *
 * @returns the program's path
 * @throws HostCommandError with the compiler's words
 */
export async function kubernetesBinary(
  program: KubernetesProgram,
  progress: Progress,
  version: string = testedKubernetesVersion(),
): Promise<string> {
  const asset: Asset = {
    kind: program,
    key: contentKey([RECIPE, version]),
    title: `${program} ${version} (from source, some minutes)`,
    make: async (directory) => await build(await goToolchain(progress), program, version, directory),
  };
  return join(await cachedAsset(asset, progress), program);
}

async function build(go: string, program: string, version: string, directory: string): Promise<void> {
  const source = join(directory, 'source');
  await mkdir(source);
  const env = { CGO_ENABLED: '0', GOTOOLCHAIN: 'auto', GOWORK: 'off', GOFLAGS: '-mod=mod -buildvcs=false' };
  const described = await runHostCommand([go, 'mod', 'download', '-json', `${MODULE}@v${version}`], {
    cwd: source,
    env,
  });
  const { GoMod: goModFile } = JSON.parse(described) as { readonly GoMod: string };
  const itsModule = JSON.parse(await runHostCommand([go, 'mod', 'edit', '-json', goModFile])) as GoModule;
  await writeFile(join(source, 'go.mod'), goModFor(itsModule, version));
  // The build yields to everything else: tests that measure time may run beside it.
  const argv = ['nice', '-n', '19', 'ionice', '-c', '3', go, 'build', '-p', '1', '-trimpath'] as const;
  await runHostCommand(
    [...argv, '-ldflags', linkerFlags(version), '-o', join(directory, program), `${MODULE}/cmd/${program}`],
    { cwd: source, env },
  );
  await rm(source, { recursive: true });
}

/**
 * A module that requires Kubernetes, with each of its staging modules (which it finds in its own tree) replaced by the
 * version of that module that is published beside it: v0.36.3 beside 1.36.3.
 */
export function goModFor(kubernetes: GoModule, version: string): string {
  const staging = `v0.${version.replace(/^1\./, '')}`;
  const replacements = kubernetes.Replace.filter(({ New }) => New.Path.startsWith('./staging/')).map(
    ({ Old }) => `\t${Old.Path} => ${Old.Path} ${staging}\n`,
  );
  return [
    'module cluster-tools\n\n',
    `go ${kubernetes.Go}\n\n`,
    `require ${MODULE} v${version}\n\n`,
    `replace (\n${replacements.join('')})\n`,
  ].join('');
}

/** Without these a program says that it is version 0.0.0. */
function linkerFlags(version: string): string {
  const [major = '', minor = ''] = version.split('.');
  const settings = {
    'k8s.io/component-base/version.gitVersion': `v${version}`,
    'k8s.io/component-base/version.gitMajor': major,
    'k8s.io/component-base/version.gitMinor': minor,
    'k8s.io/client-go/pkg/version.gitVersion': `v${version}`,
  };
  return ['-s', '-w', ...Object.entries(settings).map(([name, value]) => `-X ${name}=${value}`)].join(' ');
}
