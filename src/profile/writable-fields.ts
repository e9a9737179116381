import type { AuthContext } from '../context'
import { ValidationError } from '../errors'
import type { HostFields } from '../store/auth-store'

/** The names of the host's fields that a person may write. */
export function writableFields({ store }: Pick<AuthContext, 'store'>): string[] {
  return [...(store.users.hostFields ?? [])].flatMap(([name, { readOnly }]) => (readOnly ? [] : [name]))
}

/** The writable fields among the values of a body; a value that is undefined is none. */
export function pickWritable(ctx: Pick<AuthContext, 'store'>, body: object): HostFields {
  const given = new Map<string, unknown>(Object.entries(body))
  return Object.fromEntries(writableFields(ctx).flatMap((name) => (given.get(name) === undefined ? [] : [[name, given.get(name)]])))
}

/** One answer for a name that does not exist, a read-only field and a private read-only field. @throws ValidationError */
export function refuseOthers(ctx: Pick<AuthContext, 'store'>, fields: object): void {
  const writable = writableFields(ctx)
  const others = Object.keys(fields).filter((name) => !writable.includes(name))
  if (others.length > 0)
    throw new ValidationError({ details: { errors: others.map((name) => ({ path: `fields.${name}`, rule: 'any.unknown' })) } })
}
