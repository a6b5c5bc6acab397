/** One line of Prometheus' text form. */
export interface Sample {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:\\.|[^"\\])*)"/g;
const MAX_CHARACTERS = 4 * 1024 * 1024;

/** The samples of a metrics endpoint; lines that are none are passed over. */
export function samplesOf(text: string): readonly Sample[] {
  return text
    .slice(0, MAX_CHARACTERS)
    .split('\n')
    .flatMap((line): readonly Sample[] => {
      const [, name, labelText = '', value = ''] = LINE.exec(line) ?? [];
      if (name === undefined) return [];
      const labels = [...labelText.matchAll(LABEL)].map(
        ([, key = '', quoted = '']) => [key, quoted.replaceAll(/\\(.)/g, '$1')] as const,
      );
      return [{ name, labels: new Map(labels), value: Number(value) }];
    });
}
