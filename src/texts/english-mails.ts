/**
 * The texts of the mails, in English. A topic has a subject, what happened (`lead`, `more`), what to do if it was another person
 * (`not_you`), and sometimes a button. `…_without_password` replaces a text if passwords are off.
 */
export const englishMails = {
  'mail.hello': 'Hello,',
  'mail.hello_name': 'Hello {name},',
  'mail.code_label': 'Your code:',
  'mail.button_hint': 'If the button does not work, copy this link into your browser:',
  'mail.valid.link': 'This link is valid for {duration}, until {instant} (UTC).',
  'mail.valid.code': 'This code is valid for {duration}, until {instant} (UTC).',
  'mail.valid.both': 'The link or the code, whichever you use, is valid for {duration}, until {instant} (UTC).',
  'mail.signed_up': 'The account was requested on {time}.',
  'mail.signed_up_with': 'The account was requested on {time}, with {browser}.',
  'mail.login.time': 'Time: {time}',
  'mail.login.browser': 'Browser: {browser}',
  'mail.login.ip': 'IP address: {ip}',
  'mail.recovery_code': 'A recovery code confirmed this change. Each code works only once.',
  'mail.passkeys_removed': 'Every passkey was removed from your account, too.',
  'mail.can_sign_up': 'If you want an account, you can sign up with this address.',
  'mail.undo.why':
    'If it was not you, undo the change with the link below. Your account goes back to how it was, every session ends, and you choose a new password.',
  'mail.undo.why_without_password':
    'If it was not you, undo the change with the link below. Your account goes back to how it was, and every session ends.',
  'mail.undo.button': 'Undo this change',
  'mail.undo.final': 'Your authenticator app, or a passkey of yours, confirmed this change, so no link can undo it.',
  'mail.left.password': 'a new password, which you choose with the link that we mail to this address',
  'mail.left.email_login': 'a mail to this address, with which you sign in',
  'mail.left.identity': '“{provider}”, linked on {date}',
  'mail.left.passkey': 'a passkey, added on {date}',
  'mail.left.factor': 'your authenticator app, set up on {date}, as the second step',
  'mail.removed.password': 'the password',
  'mail.removed.second_factor': 'two-step verification',
  'mail.removed.sessions': 'every open session',
  'mail.removed.profile': 'the name and the details of the profile',
  'mail.removed.passkeys': 'every passkey',
  'mail.removed.identity': 'the sign-in provider “{provider}”',
  'mail.look_at_once': 'If it was not you, secure this mailbox first. Then sign in and look through your account right away.',
  'mail.activation.subject': 'Activate your account',
  'mail.activation.lead':
    'An account was created with this email address. If it was you, confirm that the address is yours to activate the account.',
  'mail.activation.button': 'Activate account',
  'mail.activation.not_you': 'If it was not you, you can ignore this email: without this step the account stays inactive.',
  'mail.password_reset.subject': 'Choose a new password',
  'mail.password_reset.lead': 'We received a request for a new password for your account. Open the link below to choose one.',
  'mail.password_reset.button': 'Choose new password',
  'mail.password_reset.not_you': 'If you did not ask for this, you can ignore this email: your password stays as it is.',
  'mail.email_verification.subject': 'Confirm your email address',
  'mail.email_verification.lead': 'Please confirm that this email address is yours. Open the link below to do so.',
  'mail.email_verification.button': 'Confirm address',
  'mail.email_verification.not_you': 'If you did not ask for this, you can ignore this email: nothing changes.',
  'mail.email_change.subject': 'Confirm your new email address',
  'mail.email_change.lead':
    'We received a request to use this email address for an account from now on. If the account is yours, confirm the address.',
  'mail.email_change.button': 'Confirm new address',
  'mail.email_change.not_you': 'If you did not ask for this, you can ignore this email: nothing changes.',
  'mail.account_restored.subject': 'Your account is back as it was',
  'mail.account_restored.lead':
    'The link in one of our emails was used to undo changes to your account. Every session has ended, and the old password no longer works.',
  'mail.account_restored.more': 'What can be used to sign in now:',
  'mail.account_restored.button': 'Choose new password',
  'mail.account_restored.not_you':
    'If it was not you, somebody else can read your emails: secure this mailbox first, then choose a new password.',
  'mail.account_restored.lead_without_password':
    'The link in one of our emails was used to undo changes to your account. Every session has ended.',
  'mail.account_restored.button_without_password': 'Sign in',
  'mail.address_taken_back.subject': 'Your account has its former email address again',
  'mail.address_taken_back.lead':
    'Somebody who reads the former address of your account undid the change to this one. Emails about the account no longer come here.',
  'mail.address_taken_back.not_you': 'If it was not you and the account is yours, contact our support right away.',
  'mail.admin_granted.subject': 'There is a new administrator',
  'mail.admin_granted.lead': 'This account became an administrator:',
  'mail.admin_granted.not_you':
    'If it was not you, and nobody told you about it, take the right away again and end the sessions of that account.',
  'mail.admin_revoked.subject': 'An administrator was removed',
  'mail.admin_revoked.lead': 'This account is no longer an administrator:',
  'mail.admin_revoked.not_you': 'If it was not you, and nobody told you about it, look at who is an administrator right away.',
  'mail.email_login.subject': 'Sign in',
  'mail.email_login.lead': 'Somebody asked to sign in with this email address. If it was you, go on with what is below.',
  'mail.email_login.button': 'Sign in',
  'mail.email_login.not_you':
    'If it was not you, ignore this email and tell nobody what is in it: whoever has it can sign in to your account.',
  'mail.confirmation_code.subject': 'Confirm that it is you',
  'mail.confirmation_code.lead': 'Enter this code where you are signed in, to confirm that it is you.',
  'mail.confirmation_code.not_you':
    'If it was not you, tell nobody this code. Somebody is signed in to your account: sign out everywhere, and contact our support.',
  'mail.no_account.subject': 'There is no account with this address',
  'mail.no_account.lead':
    'Somebody asked to sign in with this email address, but no account has it. Maybe you signed up with another address.',
  'mail.no_account.not_you': 'If it was not you, you can ignore this email.',
  'mail.address_taken.subject': 'You already have an account',
  'mail.address_taken.lead': 'Someone tried to create an account with this email address, which already has one. Nothing has changed.',
  'mail.address_taken.more': 'If it was you, sign in instead, or ask for a new password.',
  'mail.address_taken.not_you': 'If it was not you, there is nothing you need to do.',
  'mail.address_taken.more_without_password': 'If it was you, sign in instead.',
  'mail.password_changed.subject': 'Your password was changed',
  'mail.password_changed.lead': 'The password of your account has just been changed.',
  'mail.password_changed.not_you': 'If it was not you, ask for a new password right away: choosing it ends every session of your account.',
  'mail.email_change_requested.subject': 'A change of your email address was requested',
  'mail.email_change_requested.lead':
    'Someone who is signed in to your account asked to change its email address. We sent a link to the new address; until it is confirmed there, nothing changes.',
  'mail.email_change_requested.not_you': 'If it was not you, ask for a new password right away: choosing it also cancels this change.',
  'mail.email_changed.subject': 'Your email address was changed',
  'mail.email_changed.lead':
    'The email address of your account has just been changed. Emails about the account no longer come to this address.',
  'mail.email_changed.not_you':
    'If it was not you, contact our support right away: you can no longer recover the account with this address.',
  'mail.email_change_taken.subject': 'Someone wanted to use your email address',
  'mail.email_change_taken.lead':
    'Someone asked to use this email address for another account. It already belongs to yours, so nothing has changed.',
  'mail.email_change_taken.more':
    'If it was you, sign in to the account that has this address, or choose a different one for the other account.',
  'mail.email_change_taken.not_you': 'If it was not you, there is nothing you need to do.',
  'mail.identity_linked.subject': 'A new way to sign in to your account',
  'mail.identity_linked.lead': 'The sign-in provider “{provider}” was linked to your account. From now on it can be used to sign in.',
  'mail.identity_linked.not_you': 'If it was not you, unlink it in your account settings and choose a new password right away.',
  'mail.identity_unlinked.subject': 'A way to sign in was removed',
  'mail.identity_unlinked.lead': 'The sign-in provider “{provider}” was unlinked from your account. It can no longer be used to sign in.',
  'mail.identity_unlinked.not_you': 'If it was not you, choose a new password right away, and link it again.',
  'mail.passkey_added.subject': 'A passkey was added to your account',
  'mail.passkey_added.lead': 'A passkey was added to your account. From now on it can be used to sign in.',
  'mail.passkey_added.not_you': 'If it was not you, remove it in your account settings and choose a new password right away.',
  'mail.passkey_removed.subject': 'A passkey was removed from your account',
  'mail.passkey_removed.lead': 'A passkey was removed from your account. It can no longer be used to sign in.',
  'mail.passkey_removed.not_you': 'If it was not you, choose a new password right away, and add the passkey again.',
  'mail.mfa_enabled.subject': 'Two-step verification is on',
  'mail.mfa_enabled.lead':
    'From now on, signing in to your account also takes a code from your authenticator app. Keep your recovery codes in a safe place.',
  'mail.mfa_enabled.not_you': 'If it was not you, contact our support right away.',
  'mail.mfa_replaced.subject': 'Your authenticator app was replaced',
  'mail.mfa_replaced.lead':
    'Another authenticator app was set up for your account. The codes of the one before it, and your earlier recovery codes, no longer work.',
  'mail.mfa_replaced.not_you': 'If it was not you, contact our support right away.',
  'mail.mfa_disabled.subject': 'Two-step verification is off',
  'mail.mfa_disabled.lead': 'Signing in to your account no longer takes a code from your authenticator app.',
  'mail.mfa_disabled.not_you': 'If it was not you, choose a new password right away and turn two-step verification on again.',
  'mail.recovery_codes_regenerated.subject': 'You have new recovery codes',
  'mail.recovery_codes_regenerated.lead': 'New recovery codes were made for your account. The old ones no longer work.',
  'mail.recovery_codes_regenerated.not_you': 'If it was not you, choose a new password right away and make new recovery codes.',
  'mail.account_taken_over.subject': 'Your account was secured',
  'mail.account_taken_over.lead':
    'You have just confirmed that this email address is yours. Before that, nobody had confirmed it, so another person may have set up this account. For your safety, we removed the things listed below.',
  'mail.account_taken_over.more':
    'If you added any of these things yourself, sign in and add them again. If you need a new password, ask for one with this address.',
  'mail.account_taken_over.not_you':
    'If you did not confirm the address, ask for a new password right away: your mailbox may be in use by somebody else.',
  'mail.account_taken_over.more_without_password': 'If you added any of these things yourself, sign in and add them again.',
  'mail.account_taken_over.not_you_without_password':
    'If you did not confirm the address, secure this mailbox right away: somebody else may be using it.',
  'mail.recovery_code_used.subject': 'A recovery code was used',
  'mail.recovery_code_used.lead':
    'A recovery code of your account has just been used. Each works only once: make new ones before they run out.',
  'mail.recovery_code_used.not_you': 'If it was not you, choose a new password right away and make new recovery codes.',
  'mail.new_device.subject': 'A new device signed in to your account',
  'mail.new_device.lead': 'Somebody signed in to your account in a browser that was not used for it before.',
  'mail.new_device.not_you': 'If it was not you, sign that device out in your account settings and choose a new password right away.',
  'mail.wrong_codes.subject': 'Wrong codes were typed for your account',
  'mail.wrong_codes.lead':
    'Three wrong codes of the two-step verification were typed for your account. Whoever typed them knows the first step of a sign-in, such as your password.',
  'mail.wrong_codes.not_you': 'If it was not you, choose a new password right away. Nobody got into your account by these codes.',
  'mail.wrong_codes.lead_without_password':
    'Three wrong codes of the two-step verification were typed for your account. Whoever typed them got past the first step.',
  'mail.wrong_codes.not_you_without_password':
    'If it was not you, secure this mailbox right away. Nobody got into your account by these codes.',
} as const satisfies Readonly<Record<string, string>>
