import type { Request } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { passwordText, validate } from '../http/validate'
import { type Evidence, evidenceOf, PasswordAskedError } from './evidence'

interface OldPassword {
  password?: string
  forgot?: string
}

/** Fields of a page that asks for the account's password. With `forgot`, the person says that they do not know it, and it is removed. */
export const oldPassword = Joi.object<OldPassword>({
  password: passwordText().allow('').optional(),
  forgot: Joi.string().valid('1').optional(),
})

/**
 * Returns the evidence of a page's form. If the page asks for the password, the person enters it or sets `forgot`, because one click must
 * not remove a password.
 * @param isAsked tells whether the page asks, given the other evidence of the request
 * @throws PasswordAskedError if the page asks and the form has neither; a ValidationError with a message for the person
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
