import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The folder of the C sources of this project's guest programs. */
export const GUEST_PROGRAM_SOURCES = import.meta.dirname;

/** The static programs that `make` builds here, by file name. */
export const GUEST_PROGRAMS = [
  'attack',
  'cgroups',
  'execcheck',
  'execstorm',
  'marker',
  'pathlengths',
  'pause',
  'place',
  'tiny',
] as const;

export type GuestProgram = (typeof GUEST_PROGRAMS)[number];

/**
 * Builds the static guest programs where their sources are newer, and returns each program's path.
 * Several processes may call it at a time: they wait for each other.
 *
 * @throws Error with the compiler's output, and the packages to install, if the build fails.
 */
export async function buildGuestPrograms(): Promise<Readonly<Record<GuestProgram, string>>> {
  try {
    await run('flock', [GUEST_PROGRAM_SOURCES, 'make', '-s', '-C', GUEST_PROGRAM_SOURCES]);
  } catch (cause) {
    throw new Error(
      `The guest programs did not build. They need a C compiler and the static C library: ` +
        `apt-get install -y make gcc libc6-dev util-linux. ${String(cause)}`,
      { cause },
    );
  }
  const path = (program: GuestProgram): string => join(GUEST_PROGRAM_SOURCES, 'build', program);
  return {
    attack: path('attack'),
    cgroups: path('cgroups'),
    execcheck: path('execcheck'),
    execstorm: path('execstorm'),
    marker: path('marker'),
    pathlengths: path('pathlengths'),
    pause: path('pause'),
    place: path('place'),
    tiny: path('tiny'),
  };
}
