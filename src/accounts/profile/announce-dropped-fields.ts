import type { AuthContext } from '../../context'
import { seeTroubleshooting } from '../../core/troubleshooting'
import type { StandardSchema } from '../../http/host-schema'
import { writableFields } from './writable-fields'

const announced = new WeakMap<StandardSchema, Set<string>>()

/**
 * Warns about a field that the schema drops, when a person first sends the field. The check cannot run at boot, because a Standard Schema
 * does not list its keys.
 */
export function announceDroppedFields(ctx: AuthContext, schema: StandardSchema, sent: object, value: object): void {
  const known = announced.get(schema) ?? new Set()
  announced.set(schema, known)
  const dropped = writableFields(ctx).filter((name) => Object.hasOwn(sent, name) && !Object.hasOwn(value, name) && !known.has(name))
  for (const field of dropped) {
    known.add(field)
    ctx.logger.warn(
      { field },
      `doorward: a person sent the field ${field}, and signup.schema dropped it, so it is not written. Describe it in signup.schema, or map it as readOnly in users.fields. ${seeTroubleshooting('field-dropped-by-schema')}`,
    )
  }
}
