/**
 * Every operation of the router that has a method, by group: `name route flags`. A route begins with its method; without
 * it, POST. The flags are:
 * - `k`: there is a cookie route.
 * - `s`: changes a session or the person. Runs under the lock, and the client asks whoami afterwards.
 * - `r`: the answer is login-shaped, which is `s` too; `o`: a logout. `p`: for the person who is signed in, although login-shaped.
 * - `t`, `q`, `a`, `m`, `x`: takes `refresh_token` (delivery `bearer`), `request_token`, `signup_token`, `mfa_token`, `task_token`, which the
 *   client keeps.
 * - `w`: an authenticator answers (`passkeys.ts`).
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
  passkeys: `list GET/passkeys,register /passkeys/register wt,rename PATCH/passkeys/:id t,remove DELETE/passkeys/:id t,logIn /passkeys/login krw,signUp /signup/passkey krw`,
  sessions: `list GET/sessions,revoke DELETE/sessions/:id s,revokeOthers /sessions/revoke-others kst`,
  providers: `list GET/oauth/accounts,link /oauth/:provider/link t,unlink /oauth/accounts/unlink t,redeemLink /oauth/link/redeem kt,\
reauthenticate /oauth/:provider/reauthenticate t,logInWithToken /oauth/:provider/token r,exchange /oauth/exchange r`,
  tasks: `device /tasks/device krx,resend /tasks/device/resend kx,newPassword /tasks/new-password krx,\
enroll /tasks/second-factor/enroll kx,confirm /tasks/second-factor/confirm krx,complete /tasks/:key krx`,
  trustedDevices: `list GET/trusted-devices,remove DELETE/trusted-devices/:id`,
} as const

/** @param lines the operations of one group. Returns the name and the rest of each */
export function operationsOf(lines: string): string[][] {
  return lines.split(',').map((line) => line.split(/ (.+)/))
}

export type Body = Record<string, unknown>

/** Sends an operation and returns its answer. @param line `route flags` of the table */
export type Call = (line: string, args: readonly unknown[]) => Promise<unknown>
