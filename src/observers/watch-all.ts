import { type AuthEventName, type AuthEvents, eventFields } from '../core/events'

/** The watcher drops a field of another type. */
export type PayloadValue = string | number | boolean | null | readonly string[]

/** Only with the fields that `eventFields` lists. Returns a function that stops the calls. */
export function watchAll(events: AuthEvents, hear: (name: AuthEventName, payload: Record<string, PayloadValue>) => void): () => void {
  const names = Object.keys(eventFields) as AuthEventName[] // a mapped type has exactly these keys
  const stops = names.map((name) => events.on(name, (payload) => hear(name, declared(name, payload))))
  return () => {
    for (const stop of stops) stop()
  }
}

function declared(name: AuthEventName, payload: object): Record<string, PayloadValue> {
  const given = new Map<string, unknown>(Object.entries(payload))
  const fields: readonly string[] = eventFields[name]
  return Object.fromEntries(
    fields.flatMap((field) => {
      const value = plain(given.get(field))
      return value === undefined ? [] : [[field, value]]
    }),
  )
}

const longestText = 256

function plain(value: unknown): PayloadValue | undefined {
  if (typeof value === 'string') return value.slice(0, longestText)
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value
  return Array.isArray(value) ? value.slice(0, 16).map((item) => String(item).slice(0, longestText)) : undefined
}
