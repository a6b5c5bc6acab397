import { yamlText } from '@runtime-enforcer/api/yaml-text';
import { type Platform, platformName } from './platform.ts';

/** An archive of one platform. */
export interface PublishedArchive {
  readonly platform: Platform;
  /** Its file name. */
  readonly name: string;
  readonly sha256: string;
}

/** Files in each archive. */
export const ARCHIVED = [
  'kubectl-runtime_enforcer',
  'kubectl_complete-runtime_enforcer',
  'LICENSE',
  'THIRD-PARTY-LICENSES',
];

/**
 * The manifest by which krew installs the plugin.
 *
 * @param releaseUrl where the archives are published, without a slash at the end
 */
export function krewManifest(
  version: string,
  releaseUrl: string,
  archives: readonly PublishedArchive[],
): string {
  return yamlText({
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'runtime-enforcer' },
    spec: {
      version: `v${version}`,
      homepage: releaseUrl,
      shortDescription: 'Decide which executables containers may start',
      description: [
        'Look at what was learned of workloads, promote it to policies, switch them between monitor and protect,',
        'follow their violations, and find out why something is denied, or what is wrong.',
        'Needs Runtime Enforcer in the cluster; `test` and `simulate -f` work without one.',
      ].join('\n'),
      caveats: [
        'For completion (kubectl 1.26 or newer) put kubectl_complete-runtime_enforcer on PATH:',
        '  kubectl runtime-enforcer completion > ~/bin/kubectl_complete-runtime_enforcer',
        '  chmod +x ~/bin/kubectl_complete-runtime_enforcer',
      ].join('\n'),
      platforms: archives.map(({ platform, name, sha256 }) => ({
        selector: { matchLabels: { os: platform.os, arch: platform.arch } },
        uri: `${releaseUrl}/v${version}/${name}`,
        sha256,
        bin: ARCHIVED[0],
        files: ARCHIVED.map((file) => ({ from: file, to: '.' })),
      })),
    },
  });
}

/** `kubectl-runtime_enforcer_v0.1.0_linux-amd64.tar.gz` */
export function archiveName(version: string, platform: Platform): string {
  return `kubectl-runtime_enforcer_v${version}_${platformName(platform)}.tar.gz`;
}
