import table from './dangerous-executables.json' with { type: 'json' };

/** Why it is dangerous to allow an executable. */
export type DangerClass = keyof typeof table.classes;

/** Something that is dangerous to allow, and who says so. */
export interface Danger {
  readonly class: DangerClass;
  /** What it does, as the rest of a sentence. */
  readonly why: string;
  /** Address of the page that tells how it is abused. */
  readonly source: string;
}

const VERSION = /(?:-?\d+(?:\.\d+)*)$|\.\d+$/;

const BY_NAME = new Map(
  table.executables.map((entry) => {
    const dangerClass = entry.class as DangerClass;
    const danger: Danger = { class: dangerClass, why: table.classes[dangerClass], source: entry.source };
    return [entry.name, { danger, hasVersions: 'versions' in entry }] as const;
  }),
);

/** What is known against allowing an executable, by the last part of its path, version numbers left aside. */
export function dangerOf(path: string): Danger | undefined {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const exact = BY_NAME.get(name);
  if (exact !== undefined) return exact.danger;
  const base = name.replace(VERSION, '');
  const versioned = BY_NAME.get(base);
  return versioned?.hasVersions === true || base.startsWith('ld-') ? versioned?.danger : undefined;
}
