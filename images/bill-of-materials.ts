import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Enums, Models, Serialize, Spec } from '@cyclonedx/cyclonedx-library';
import { DEBIAN_SUITE } from './debian-packages.ts';

/** What an image is made of, besides the product itself. */
export interface Materials {
  readonly debian: readonly { readonly name: string; readonly version: string }[];
  readonly architecture: string;
  readonly nodeVersion: string;
  /** The directories of npm packages. */
  readonly npmPackages: readonly string[];
}

/**
 * What an image holds, as CycloneDX 1.6 in JSON. The same content gives the same text: it has no time and no serial
 * number.
 */
export async function billOfMaterials(name: string, version: string, materials: Materials): Promise<string> {
  const bom = new Models.Bom();
  bom.metadata.component = new Models.Component(Enums.ComponentType.Container, name, {
    version,
    bomRef: 'image',
  });
  for (const { name: packageName, version: packageVersion } of materials.debian) {
    const place = `arch=${materials.architecture}&distro=${DEBIAN_SUITE}`;
    const url = `pkg:deb/debian/${purlPart(packageName)}@${purlPart(packageVersion)}?${place}`;
    bom.components.add(library(packageName, packageVersion, url));
  }
  const { nodeVersion } = materials;
  const node = library('node', nodeVersion, `pkg:generic/node@${nodeVersion}`);
  node.licenses.add(new Models.NamedLicense('see /usr/share/doc/node/LICENSE'));
  bom.components.add(node);
  for (const directory of materials.npmPackages) bom.components.add(await npmPackage(directory));
  const format = new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6);
  return `${new Serialize.JsonSerializer(format).serialize(bom, { sortLists: true, space: 2 })}\n`;
}

async function npmPackage(directory: string): Promise<Models.Component> {
  const manifest = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8')) as {
    readonly name: string;
    readonly version: string;
    readonly license?: string;
  };
  const { name, version, license } = manifest;
  const component = library(name, version, `pkg:npm/${name.replace(/^@/, '%40')}@${purlPart(version)}`);
  if (license !== undefined) component.licenses.add(new Models.LicenseExpression(license));
  return component;
}

function library(name: string, version: string, purl: string): Models.Component {
  return new Models.Component(Enums.ComponentType.Library, name, { version, purl, bomRef: purl });
}

/** A name or version within a package URL. */
function purlPart(text: string): string {
  return encodeURIComponent(text).replaceAll('%3A', ':');
}
