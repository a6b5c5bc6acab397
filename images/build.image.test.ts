import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Spec, Validation } from '@cyclonedx/cyclonedx-library';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ARCHITECTURES, hostArchitecture } from './architecture.ts';
import { type BuiltImage, buildImages } from './build.ts';
import { IMAGE_PROGRAMS, imageProgramNamed } from './programs.ts';
import { type UnpackedImage, unpackImage } from './testing/unpacked-image.ts';

const MEBIBYTE = 1_048_576;
const SIZE_LIMIT_MIB = 150;
const REPOSITORY_NAME = 'test.local/runtime-enforcer';
const NAMES = IMAGE_PROGRAMS.map(({ program }) => program.name);
const VERSION = (
  JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8')) as { version: string }
).version;

let directory: string;
const built = new Map<string, BuiltImage>();
const unpacked = new Map<string, UnpackedImage>();
const image = (name: string): UnpackedImage =>
  unpacked.get(name) ?? expect.fail(`no image ${name} was built`);

async function buildAll(into: string): Promise<readonly BuiltImage[]> {
  return await buildImages(IMAGE_PROGRAMS, {
    ...{ architecture: hostArchitecture(), repository: REPOSITORY_NAME, directory: join(directory, into) },
    progress: () => undefined,
  });
}

/** Runs a program of an image as its user, with the image as the root directory. */
function runIn(name: string, ...argv: readonly string[]): string {
  const { root, config } = image(name);
  return execFileSync('chroot', [`--userspec=${config.User ?? ''}`, root, ...argv], {
    encoding: 'utf8',
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
  });
}

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'runtime-enforcer-images-'));
  for (const each of await buildAll('first')) {
    built.set(each.name, each);
    unpacked.set(each.name, unpackImage(each.tarPath, directory));
  }
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

it('has the same digests when nothing is left of an earlier build, not even what was downloaded', async () => {
  const cache = process.env['XDG_CACHE_HOME'];
  process.env['XDG_CACHE_HOME'] = join(directory, 'cache');
  try {
    const again = await buildAll('second');
    for (const { name, digest, tarPath } of again) {
      expect(digest, name).toBe(built.get(name)?.digest);
      expect(readFileSync(tarPath).equals(readFileSync(built.get(name)?.tarPath ?? '')), name).toBe(true);
    }
  } finally {
    if (cache === undefined) delete process.env['XDG_CACHE_HOME'];
    else process.env['XDG_CACHE_HOME'] = cache;
  }
});

describe.each(NAMES)('the image of the %s', (name) => {
  it('is named after its program and version, and is not too large', () => {
    const { ref, digest, unpackedBytes, compressedBytes } = built.get(name) ?? expect.fail('was not built');
    expect(ref).toBe(`${REPOSITORY_NAME}/${name}:${VERSION}`);
    expect(image(name)).toMatchObject({ ref, digest, architecture: hostArchitecture().name });
    expect(unpackedBytes / MEBIBYTE).toBeLessThan(SIZE_LIMIT_MIB);
    expect(compressedBytes).toBeLessThan(unpackedBytes);
  });

  it('starts what it says, as its user', () => {
    const { Entrypoint = [] } = image(name).config;
    expect(runIn(name, ...Entrypoint, '--version').trim()).toBe(VERSION);
    expect(runIn(name, ...Entrypoint, '--help')).toContain(name);
  });

  it('has a command for who enters a container, though it has no shell', () => {
    expect(runIn(name, `/usr/local/bin/${name}`, '--version').trim()).toBe(VERSION);
  });

  it('holds nothing else that runs, nothing of another user, and nothing that gives rights away', () => {
    const { root } = image(name);
    const find = (...tests: readonly string[]): string[] =>
      execFileSync('find', [root, ...tests, '-printf', '/%P\n'], { encoding: 'utf8' })
        .split('\n')
        .filter((path) => path !== '' && !/\/lib\/[^/]*-linux-gnu\//.test(path));
    const executable = find('-type', 'f', '-perm', '/111', '!', '-name', '*.node');
    expect(executable.toSorted()).toEqual([`/usr/local/bin/${name}`, '/usr/local/bin/node'].toSorted());
    expect(find('-perm', '/6000')).toEqual([]);
    expect(find('!', '-user', '0')).toEqual([]);
    expect(find('-perm', '-002', '!', '-type', 'l')).toEqual(['/tmp']);
    expect(find('-regex', '.*/\\(ba\\|da\\|z\\)?sh\\|.*/busybox\\|.*/npm\\|.*/apt.*\\|.*/dpkg')).toEqual([
      '/var/lib/dpkg',
    ]);
  });

  it('lists what it holds as a valid bill of materials, each with its licence', async () => {
    const text = readFileSync(built.get(name)?.billPath ?? '', 'utf8');
    const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);
    expect(await validator.validate(text)).toBeNull();
    expect(
      readFileSync(join(image(name).root, `usr/share/doc/runtime-enforcer/${name}.cdx.json`), 'utf8'),
    ).toBe(text);
    const { components } = JSON.parse(text) as {
      components: { name: string; version: string; purl: string; licenses?: unknown[] }[];
    };
    const documents = join(image(name).root, 'usr/share/doc');
    const thirdParty = readFileSync(join(documents, 'runtime-enforcer/THIRD-PARTY-LICENSES'), 'utf8');
    for (const { name: component, version, purl, licenses } of components) {
      if (purl.startsWith('pkg:deb/')) {
        expect(readFileSync(join(documents, component, 'copyright'), 'utf8')).not.toBe('');
        const status = readFileSync(join(image(name).root, 'var/lib/dpkg/status.d', component), 'utf8');
        expect(status).toContain(`Version: ${version}\n`);
      } else {
        expect(licenses, component).toHaveLength(1);
        if (purl.startsWith('pkg:npm/')) expect(thirdParty).toContain(`${component} ${version} (`);
      }
    }
    const kinds = new Set(components.map(({ purl }) => /^pkg:(\w+)\//.exec(purl)?.[1]));
    expect([...kinds].toSorted()).toEqual(['deb', 'generic', 'npm']);
    expect(readFileSync(join(documents, 'node/LICENSE'), 'utf8')).toContain('Node.js is licensed');
  });
});

it('runs the controller as nobody, and the agent as root, which BPF asks for', () => {
  expect(image('controller').config.User).toBe('65532:65532');
  expect(image('agent').config.User).toBe('0:0');
});

it('gives the agent an addon that loads, and the kernel objects', () => {
  const script = "console.log(Object.keys(require('/opt/runtime-enforcer/enforcer_native.node')).length > 0)";
  expect(runIn('agent', '/usr/local/bin/node', '-e', script).trim()).toBe('true');
  const object = readFileSync(join(image('agent').root, 'opt/runtime-enforcer/enforcer.bpf.o'));
  expect(object.equals(readFileSync(join(import.meta.dirname, '../bpf/build/enforcer.bpf.o')))).toBe(true);
});

it('lets no program in that has no image', () => {
  expect(() => imageProgramNamed('shell')).toThrow(/no image "shell"; there are agent/);
});

describe('for machines of another architecture', () => {
  const other =
    ARCHITECTURES.find(({ name }) => name !== hostArchitecture().name) ?? expect.fail('there is none');
  const build = async (name: string): Promise<readonly BuiltImage[]> =>
    await buildImages([imageProgramNamed(name)], {
      ...{ architecture: other, repository: REPOSITORY_NAME, directory: join(directory, 'other') },
      progress: () => undefined,
    });

  it('builds a program that is all script', async () => {
    const [controller] = await build('controller');
    const { root, architecture } = unpackImage(controller?.tarPath ?? '', directory);
    expect(architecture).toBe(other.name);
    const header = execFileSync('readelf', ['-h', join(root, 'usr/local/bin/node')], { encoding: 'utf8' });
    expect(header).toContain(other.elfMachine);
  });

  it('refuses to put an addon of this machine into it', async () => {
    await expect(build('agent')).rejects.toThrow(
      new RegExp(
        `enforcer_native\\.node is for .*: expected ${other.elfMachine}; build it on such a machine`,
      ),
    );
  });
});
