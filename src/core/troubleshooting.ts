/** Ends a log line or a boot error. @param entry the anchor of the entry's heading, for example `mount-and-prefix` */
export function seeTroubleshooting(entry: string): string {
  return `See docs/troubleshooting.md#${entry}`
}
