/** Errors of the kernel side that were survived and reached no caller, by what was given up. */
export type KernelFailure =
  | 'event_undecodable'
  | 'event_handler'
  | 'container_unbind'
  | 'container_process_unknown'
  | 'running_program_unreadable'
  | 'inherited_list_undecodable'
  | 'list_removal'
  | 'policy_word';

/** Where they are counted. Must not throw. */
export type CountFailure = (place: KernelFailure) => void;
