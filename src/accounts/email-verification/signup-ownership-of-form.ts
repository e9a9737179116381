import type { Request } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../../context'
import { passwordText, validate } from '../../http/validate'
import { PasswordAskedError, type SignupOwnership, signupOwnershipOf } from './signup-ownership'

interface OldPassword {
  password?: string
  forgot?: string
}

/**
 * The fields of a page that asks for the account's password. With `forgot`, the person says that the password is forgotten, and the
 * password is removed.
 */
export const oldPassword = Joi.object<OldPassword>({
  password: passwordText().allow('').optional(),
  forgot: Joi.string().valid('1').optional(),
})

/**
 * Returns the evidence (`SignupOwnership`) of a page's form. If the page asks for the password, the person must enter the password or set
 * `forgot`, because a click alone must not remove a password.
 * @param isAsked returns true if the page asks for the password, given the other evidence of the request
 * @throws PasswordAskedError if the page asks, and the form has no password and no `forgot`. The error has a message for the person
 */
export async function signupOwnershipOfForm(
  ctx: AuthContext,
  req: Request,
  fields: unknown,
  isAsked: (evidence: SignupOwnership) => Promise<boolean>,
): Promise<SignupOwnership> {
  const { password = '', forgot } = validate(oldPassword, fields)
  const evidence = await signupOwnershipOf(ctx, req, { password })
  if (forgot !== undefined) return { ...evidence, password: undefined }
  if (password === '' && (await isAsked(evidence))) throw new PasswordAskedError()
  return evidence
}
