import { needsDatabaseUrl, type Plan } from './auth-file'
import { codeOf } from './providers'

/** Returns the names of the variables that the auth module reads, without values. */
export function envExample(plan: Plan): string {
  const lines = [
    '# Copy this file to .env, fill it in there, and keep .env out of git.',
    '',
    '# development on your machine; anything else is production',
    'NODE_ENV=',
    '# What `npx --no-install doorward secret` prints; the same in every process and after every restart',
    'AUTH_JWT_SECRET=',
    '# The public address of the app: https, or http://localhost:3000 on your machine',
    'AUTH_PUBLIC_URL=',
    ...(needsDatabaseUrl(plan) ? ['# The address of the database', 'DATABASE_URL='] : []),
    '# In production: the mail server (smtps://…), and the sender of the mails',
    'SMTP_URL=',
    'MAIL_FROM=',
    ...plan.choices.providers.flatMap((name) => {
      const { clientId, clientSecret } = codeOf(name)
      return [`# From ${name}, with the redirect URI <AUTH_PUBLIC_URL>/auth/oauth/${name}/callback`, `${clientId}=`, `${clientSecret}=`]
    }),
  ]
  return `${lines.join('\n')}\n`
}
