import type { AuthContext } from '../context'

/**
 * True if confirming a login by email creates an account for an address that has none. Calls the host's `signup.admit`.
 * @throws what `admit` throws
 */
export async function maySignUp(ctx: AuthContext, email: string): Promise<boolean> {
  const { emailLoginSignup, signupEnabled } = ctx.settings
  return emailLoginSignup && signupEnabled && (await ctx.signup.admit?.({ email, name: null })) !== false
}
