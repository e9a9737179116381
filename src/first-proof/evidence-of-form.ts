import type { Request } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { passwordText, validate } from '../http/validate'
import { type Evidence, evidenceOf, PasswordAskedError } from './evidence'

interface OldPassword {
  password?: string
  forgot?: string
}

/** The fields of a page that asks for the account's password: `forgot` drops the password that the account has. */
export const oldPassword = Joi.object<OldPassword>({
  password: passwordText().allow('').optional(),
  forgot: Joi.string().valid('1').optional(),
})

/**
 * The evidence of a page's form. Where the page asks for the password, the person types it or says that they do not know it: a click
 * alone must not remove it.
 * @param isAsked whether the page asks, given what else the request shows
 * @throws PasswordAskedError, a ValidationError with a sentence for the person
 */
export async function evidenceOfForm(
  ctx: AuthContext,
  req: Request,
  fields: unknown,
  isAsked: (evidence: Evidence) => Promise<boolean>,
): Promise<Evidence> {
  const { password = '', forgot } = validate(oldPassword, fields)
  const evidence = await evidenceOf(ctx, req, { password })
  if (forgot !== undefined) return { ...evidence, password: undefined }
  if (password === '' && (await isAsked(evidence))) throw new PasswordAskedError()
  return evidence
}
