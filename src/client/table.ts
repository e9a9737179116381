/**
 * Every operation of the router that has a method, by group: `name route flags`. A route begins with its method; without
 * it, POST. The flags are:
 * - `k`: there is a cookie route.
 * - `s`: changes a session or the person. Runs under the lock, and the client asks whoami afterwards.
 * - `r`: the answer is login-shaped, which is `s` too; `o`: a logout. `p`: for the person who is signed in, although login-shaped.
 * - `t`, `q`, `a`, `m`: takes `refresh_token` (delivery `bearer`), `request_token`, `signup_token`, `mfa_token`, which the client keeps.
 */
export const table = {
  '': `signUp /signup kr,activate /activate kra,requestActivation /activation/request,logIn /login kr,logOut /logout ktos,\
reauthenticate /reauthenticate krtp,requestConfirmationCode /reauthenticate/email kt,undo /security/undo s`,
  account: `get GET/me,update PATCH/me ts,requestVerification /email-verify/request t,verifyEmail /email-verify/confirm t,\
requestEmailChange /email-change/request t,confirmEmailChange /email-change/confirm kst`,
  password: `change /password-change kst,changeWithFactor /password-change/mfa kst,setFirst /password/first kst,\
requestReset /password-reset/request,reset /password-reset/confirm krt`,
  emailLogin: `request /email-login/request k,confirm /email-login/confirm krtqa`,
  secondFactor: `verify /mfa/verify krm,enroll /mfa/enroll t,confirm /mfa/confirm krtp,disable /mfa/disable st,\
recoveryCodes /mfa/recovery-codes t`,
  passkeys: `list GET/passkeys,register /passkeys/register t,rename PATCH/passkeys/:id t,remove DELETE/passkeys/:id t,logIn /passkeys/login kr`,
  sessions: `list GET/sessions,revoke DELETE/sessions/:id s,revokeOthers /sessions/revoke-others kst`,
  providers: `list GET/oauth/accounts,link /oauth/:provider/link t,unlink /oauth/accounts/unlink t,redeemLink /oauth/link/redeem kt,\
reauthenticate /oauth/:provider/reauthenticate t,logInWithToken /oauth/:provider/token r,exchange /oauth/exchange r`,
} as const

export interface Operation {
  readonly name: string
  readonly method: string
  /** With `:name` for each parameter. */
  readonly path: string
  readonly flags: string
}

/** @param lines the operations of one group */
export function operationsOf(lines: string): Operation[] {
  return lines.split(',').map((line) => {
    const [, name = '', method, path = '', flags = ''] = /(\w+) (\w*)(\S+) ?(.*)/.exec(line) ?? []
    return { name, method: method || 'POST', path, flags }
  })
}

export type Body = Record<string, unknown>

/** Sends an operation and returns its answer. */
export type Call = (operation: Pick<Operation, 'method' | 'path' | 'flags'>, args: readonly unknown[]) => Promise<unknown>
