import type { Logger } from '../../src/core/logger'

/** Keeps what was logged, so that a test can look for what must be there and for what must not. */
export function logTap(): Logger & { entries: { level: 'info' | 'warn' | 'error'; fields: object; message: string }[]; text(): string } {
  const entries: { level: 'info' | 'warn' | 'error'; fields: object; message: string }[] = []
  return {
    entries,
    info: (fields, message) => entries.push({ level: 'info', fields, message }),
    warn: (fields, message) => entries.push({ level: 'warn', fields, message }),
    error: (fields, message) => entries.push({ level: 'error', fields, message }),
    text: () => JSON.stringify(entries),
  }
}
