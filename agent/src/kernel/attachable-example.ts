import type { LoadOptions, Native, NativeObject, NativeProgram } from './native.ts';
import { RECORDS_OBJECT, watchThisProcess } from './native-test-objects.ts';

/** What a test sees of loads and attachments. */
export interface AttachableNative extends Native {
  /** Programs of each load, those of maps only left out. */
  readonly loads: (readonly string[])[];
  /** Called before a program is attached; may throw in its place. */
  onAttach: (program: string) => void;
}

/**
 * For tests on hosts whose kernel refuses programs that deny: the real maps of the kernel program, and in the place
 * of each of its programs one that may be attached and pinned anywhere. Everything else is the addon's.
 */
export function attachableNative(native: Native): AttachableNative {
  const attachable: AttachableNative = { ...native, loads: [], onAttach: () => undefined, load };
  return attachable;

  function load(objectPath: string, options: LoadOptions): NativeObject {
    const { maxEntries = {}, keySizes = {}, reuseMaps = {} } = options;
    const real = native.load(objectPath, { programs: [], maxEntries, keySizes, reuseMaps });
    if (options.programs.length === 0) return real;
    attachable.loads.push(options.programs);
    const stands = options.programs.map((name) => ({ name, object: standIn() }));
    const programs = stands.map(({ name, object }): [string, NativeProgram] => [
      name,
      programOf(name, object),
    ]);
    return {
      maps: real.maps,
      programs: new Map(programs),
      close() {
        real.close();
        for (const { object } of stands) object.close();
      },
    };
  }

  function standIn(): NativeObject {
    return native.load(RECORDS_OBJECT, watchThisProcess(0, 0));
  }

  function programOf(name: string, object: NativeObject): NativeProgram {
    const [program] = object.programs.values();
    if (program === undefined) throw new Error('the records object has no program');
    return {
      ...program,
      name,
      attach() {
        attachable.onAttach(name);
        return program.attach();
      },
    };
  }
}
