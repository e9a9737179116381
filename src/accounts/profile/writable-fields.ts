import type { AuthContext } from '../../context'
import { ValidationError } from '../../core/errors'
import type { HostFields } from '../../store/auth-store'

/** Returns the names of the host's fields that a person may write. */
export function writableFields({ store }: Pick<AuthContext, 'store'>): string[] {
  return [...(store.users.hostFields ?? [])].flatMap(([name, { readOnly }]) => (readOnly ? [] : [name]))
}

/** Returns the writable fields of a body. Leaves out a field whose value is undefined. */
export function pickWritable(ctx: Pick<AuthContext, 'store'>, body: object): HostFields {
  const given = new Map<string, unknown>(Object.entries(body))
  return Object.fromEntries(writableFields(ctx).flatMap((name) => (given.get(name) === undefined ? [] : [[name, given.get(name)]])))
}

/**
 * Rejects fields that a person may not write.
 * @throws ValidationError with the same rule for unknown, read-only and private read-only fields
 */
export function refuseOthers(ctx: Pick<AuthContext, 'store'>, fields: object): void {
  const writable = writableFields(ctx)
  const others = Object.keys(fields).filter((name) => !writable.includes(name))
  if (others.length > 0)
    throw new ValidationError({ details: { errors: others.map((name) => ({ path: `fields.${name}`, rule: 'any.unknown' })) } })
}
