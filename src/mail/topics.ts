import type { LocalizedText } from '../errors'
import type { AuthMail, MailTopic } from '../mailer'

/** Topics whose mail carries a link. All but `account_restored` are a kind of their own. */
export type LinkTopic = Exclude<AuthMail['kind'], 'notice'> | 'account_restored'

/** Topics that tell an owner of something and ask for nothing. */
export type NoticeTopic = Exclude<MailTopic, LinkTopic>

interface TopicText {
  subject: LocalizedText
  /** What happened, a paragraph each. `{provider}` stands for the registration key. */
  lines: readonly LocalizedText[]
  /** What to do if it was somebody else. */
  notYou: LocalizedText
}

/** The words of the built-in mails; in link topics with what the button says. */
export const topics: Record<LinkTopic, TopicText & { button: LocalizedText }> & Record<NoticeTopic, TopicText> = {
  activation: {
    subject: { 'en-US': 'Activate your account', 'pt-BR': 'Ative sua conta' },
    lines: [
      {
        'en-US':
          'An account was created with this email address. If it was you, confirm that the address is yours to activate the account.',
        'pt-BR': 'Uma conta foi criada com este endereço de e-mail. Se foi você, confirme que o endereço é seu para ativar a conta.',
      },
    ],
    button: { 'en-US': 'Activate account', 'pt-BR': 'Ativar conta' },
    notYou: {
      'en-US': 'If it was not you, you can ignore this email: without this step the account stays inactive.',
      'pt-BR': 'Se não foi você, pode ignorar este e-mail: sem essa confirmação, a conta continua inativa.',
    },
  },
  password_reset: {
    subject: { 'en-US': 'Choose a new password', 'pt-BR': 'Escolha uma nova senha' },
    lines: [
      {
        'en-US': 'We received a request for a new password for your account. Open the link below to choose one.',
        'pt-BR': 'Recebemos um pedido de nova senha para a sua conta. Abra o link abaixo para escolhê-la.',
      },
    ],
    button: { 'en-US': 'Choose new password', 'pt-BR': 'Escolher nova senha' },
    notYou: {
      'en-US': 'If you did not ask for this, you can ignore this email: your password stays as it is.',
      'pt-BR': 'Se você não fez esse pedido, pode ignorar este e-mail: sua senha continua a mesma.',
    },
  },
  email_verification: {
    subject: { 'en-US': 'Confirm your email address', 'pt-BR': 'Confirme seu endereço de e-mail' },
    lines: [
      {
        'en-US': 'Please confirm that this email address is yours. Open the link below to do so.',
        'pt-BR': 'Confirme que este endereço de e-mail é seu. Para isso, abra o link abaixo.',
      },
    ],
    button: { 'en-US': 'Confirm address', 'pt-BR': 'Confirmar endereço' },
    notYou: {
      'en-US': 'If you did not ask for this, you can ignore this email: nothing changes.',
      'pt-BR': 'Se você não fez esse pedido, pode ignorar este e-mail: nada será alterado.',
    },
  },
  email_change: {
    subject: { 'en-US': 'Confirm your new email address', 'pt-BR': 'Confirme seu novo endereço de e-mail' },
    lines: [
      {
        'en-US':
          'We received a request to use this email address for an account from now on. If the account is yours, confirm the address.',
        'pt-BR': 'Recebemos um pedido para que uma conta passe a usar este endereço de e-mail. Se a conta é sua, confirme o endereço.',
      },
    ],
    button: { 'en-US': 'Confirm new address', 'pt-BR': 'Confirmar novo endereço' },
    notYou: {
      'en-US': 'If you did not ask for this, you can ignore this email: nothing changes.',
      'pt-BR': 'Se você não fez esse pedido, pode ignorar este e-mail: nada será alterado.',
    },
  },
  account_restored: {
    subject: { 'en-US': 'Your account is back as it was', 'pt-BR': 'Sua conta voltou a ser como era' },
    lines: [
      {
        'en-US':
          'The link in one of our emails was used to undo changes to your account. Every session has ended, and the old password no longer works.',
        'pt-BR':
          'O link de um dos nossos e-mails foi usado para desfazer alterações na sua conta. Todas as sessões foram encerradas, e a senha antiga não funciona mais.',
      },
      { 'en-US': 'What can be used to sign in now:', 'pt-BR': 'O que ainda serve para entrar na conta:' },
    ],
    button: { 'en-US': 'Choose new password', 'pt-BR': 'Escolher nova senha' },
    notYou: {
      'en-US': 'If it was not you, somebody else can read your emails: secure this mailbox first, then choose a new password.',
      'pt-BR':
        'Se não foi você, outra pessoa consegue ler seus e-mails: proteja primeiro sua caixa de e-mail e depois escolha uma nova senha.',
    },
  },
  address_taken_back: {
    subject: { 'en-US': 'Your account has its former email address again', 'pt-BR': 'Sua conta voltou ao endereço de e-mail anterior' },
    lines: [
      {
        'en-US':
          'Somebody who reads the former address of your account undid the change to this one. Emails about the account no longer come here.',
        'pt-BR':
          'Alguém com acesso ao endereço anterior da sua conta desfez a alteração para este. As mensagens sobre a conta não serão mais enviadas para cá.',
      },
    ],
    notYou: {
      'en-US': 'If it was not you and the account is yours, contact our support right away.',
      'pt-BR': 'Se a conta é sua e não foi você, entre em contato com o nosso suporte imediatamente.',
    },
  },
  admin_granted: {
    subject: { 'en-US': 'There is a new administrator', 'pt-BR': 'Há uma nova conta administradora' },
    lines: [{ 'en-US': 'This account became an administrator:', 'pt-BR': 'Esta conta passou a ser administradora:' }],
    notYou: {
      'en-US': 'If it was not you, and nobody told you about it, take the right away again and end the sessions of that account.',
      'pt-BR': 'Se não foi você e ninguém avisou, retire esse direito e encerre as sessões dessa conta.',
    },
  },
  admin_revoked: {
    subject: { 'en-US': 'An administrator was removed', 'pt-BR': 'Uma conta deixou de ser administradora' },
    lines: [{ 'en-US': 'This account is no longer an administrator:', 'pt-BR': 'Esta conta não é mais administradora:' }],
    notYou: {
      'en-US': 'If it was not you, and nobody told you about it, look at who is an administrator right away.',
      'pt-BR': 'Se não foi você e ninguém avisou, verifique imediatamente quem é administrador.',
    },
  },
  address_taken: {
    subject: { 'en-US': 'You already have an account', 'pt-BR': 'Você já tem uma conta' },
    lines: [
      {
        'en-US': 'Someone tried to create an account with this email address, which already has one. Nothing has changed.',
        'pt-BR': 'Alguém tentou criar uma conta com este endereço de e-mail, mas ele já pertence a uma. Nada foi alterado.',
      },
      {
        'en-US': 'If it was you, sign in instead, or ask for a new password.',
        'pt-BR': 'Se foi você, entre na sua conta ou peça uma nova senha.',
      },
    ],
    notYou: { 'en-US': 'If it was not you, there is nothing you need to do.', 'pt-BR': 'Se não foi você, não é preciso fazer nada.' },
  },
  password_changed: {
    subject: { 'en-US': 'Your password was changed', 'pt-BR': 'Sua senha foi alterada' },
    lines: [{ 'en-US': 'The password of your account has just been changed.', 'pt-BR': 'A senha da sua conta acaba de ser alterada.' }],
    notYou: {
      'en-US': 'If it was not you, ask for a new password right away: choosing it ends every session of your account.',
      'pt-BR': 'Se não foi você, peça uma nova senha imediatamente: ao escolhê-la, todas as sessões da sua conta são encerradas.',
    },
  },
  email_change_requested: {
    subject: { 'en-US': 'A change of your email address was requested', 'pt-BR': 'Pedido de alteração do seu e-mail' },
    lines: [
      {
        'en-US':
          'Someone who is signed in to your account asked to change its email address. We sent a link to the new address; until it is confirmed there, nothing changes.',
        'pt-BR':
          'Alguém com acesso à sua conta pediu para alterar o endereço de e-mail dela. Enviamos um link ao novo endereço; até que a alteração seja confirmada por lá, nada muda.',
      },
    ],
    notYou: {
      'en-US': 'If it was not you, ask for a new password right away: choosing it also cancels this change.',
      'pt-BR': 'Se não foi você, peça uma nova senha imediatamente: ao escolhê-la, você também cancela essa alteração.',
    },
  },
  email_changed: {
    subject: { 'en-US': 'Your email address was changed', 'pt-BR': 'Seu endereço de e-mail foi alterado' },
    lines: [
      {
        'en-US': 'The email address of your account has just been changed. Emails about the account no longer come to this address.',
        'pt-BR':
          'O endereço de e-mail da sua conta acaba de ser alterado. As mensagens sobre a conta não serão mais enviadas a este endereço.',
      },
    ],
    notYou: {
      'en-US': 'If it was not you, contact our support right away: you can no longer recover the account with this address.',
      'pt-BR': 'Se não foi você, entre em contato com o nosso suporte imediatamente: este endereço já não permite recuperar a conta.',
    },
  },
  email_change_taken: {
    subject: { 'en-US': 'Someone wanted to use your email address', 'pt-BR': 'Alguém quis usar seu endereço de e-mail' },
    lines: [
      {
        'en-US': 'Someone asked to use this email address for another account. It already belongs to yours, so nothing has changed.',
        'pt-BR': 'Alguém pediu para usar este endereço de e-mail em outra conta. Como ele já pertence à sua, nada foi alterado.',
      },
      {
        'en-US': 'If it was you, sign in to the account that has this address, or choose a different one for the other account.',
        'pt-BR': 'Se foi você, entre na conta que já usa este endereço ou escolha um endereço diferente para a outra conta.',
      },
    ],
    notYou: { 'en-US': 'If it was not you, there is nothing you need to do.', 'pt-BR': 'Se não foi você, não é preciso fazer nada.' },
  },
  identity_linked: {
    subject: { 'en-US': 'A new way to sign in to your account', 'pt-BR': 'Nova forma de entrar na sua conta' },
    lines: [
      {
        'en-US': 'The sign-in provider “{provider}” was linked to your account. From now on it can be used to sign in.',
        'pt-BR': 'O provedor de login “{provider}” foi vinculado à sua conta. A partir de agora, é possível entrar com ele.',
      },
    ],
    notYou: {
      'en-US': 'If it was not you, unlink it in your account settings and choose a new password right away.',
      'pt-BR': 'Se não foi você, desvincule-o nas configurações da sua conta e troque a senha imediatamente.',
    },
  },
  identity_unlinked: {
    subject: { 'en-US': 'A way to sign in was removed', 'pt-BR': 'Uma forma de entrar na sua conta foi removida' },
    lines: [
      {
        'en-US': 'The sign-in provider “{provider}” was unlinked from your account. It can no longer be used to sign in.',
        'pt-BR': 'O provedor de login “{provider}” foi desvinculado da sua conta e não pode mais ser usado para entrar nela.',
      },
    ],
    notYou: {
      'en-US': 'If it was not you, choose a new password right away, and link it again.',
      'pt-BR': 'Se não foi você, troque a senha imediatamente e vincule-o de novo.',
    },
  },
  mfa_enabled: {
    subject: { 'en-US': 'Two-step verification is on', 'pt-BR': 'Verificação em duas etapas ativada' },
    lines: [
      {
        'en-US':
          'From now on, signing in to your account also takes a code from your authenticator app. Keep your recovery codes in a safe place.',
        'pt-BR':
          'A partir de agora, para entrar na sua conta também é preciso um código do seu aplicativo autenticador. Guarde seus códigos de recuperação em um lugar seguro.',
      },
    ],
    notYou: {
      'en-US': 'If it was not you, contact our support right away.',
      'pt-BR': 'Se não foi você, entre em contato com o nosso suporte imediatamente.',
    },
  },
  mfa_replaced: {
    subject: { 'en-US': 'Your authenticator app was replaced', 'pt-BR': 'Seu aplicativo autenticador foi substituído' },
    lines: [
      {
        'en-US':
          'Another authenticator app was set up for your account. The codes of the one before it, and your earlier recovery codes, no longer work.',
        'pt-BR':
          'Outro aplicativo autenticador foi configurado na sua conta. Os códigos do anterior e os seus códigos de recuperação antigos não funcionam mais.',
      },
    ],
    notYou: {
      'en-US': 'If it was not you, contact our support right away.',
      'pt-BR': 'Se não foi você, entre em contato com o nosso suporte imediatamente.',
    },
  },
  mfa_disabled: {
    subject: { 'en-US': 'Two-step verification is off', 'pt-BR': 'Verificação em duas etapas desativada' },
    lines: [
      {
        'en-US': 'Signing in to your account no longer takes a code from your authenticator app.',
        'pt-BR': 'Para entrar na sua conta, já não é preciso um código do seu aplicativo autenticador.',
      },
    ],
    notYou: {
      'en-US': 'If it was not you, choose a new password right away and turn two-step verification on again.',
      'pt-BR': 'Se não foi você, troque a senha imediatamente e ative a verificação em duas etapas de novo.',
    },
  },
  recovery_codes_regenerated: {
    subject: { 'en-US': 'You have new recovery codes', 'pt-BR': 'Você tem novos códigos de recuperação' },
    lines: [
      {
        'en-US': 'New recovery codes were made for your account. The old ones no longer work.',
        'pt-BR': 'Novos códigos de recuperação foram gerados para a sua conta. Os antigos não funcionam mais.',
      },
    ],
    notYou: {
      'en-US': 'If it was not you, choose a new password right away and make new recovery codes.',
      'pt-BR': 'Se não foi você, troque a senha imediatamente e gere novos códigos de recuperação.',
    },
  },
  account_taken_over: {
    subject: { 'en-US': 'Your account was secured', 'pt-BR': 'Sua conta foi protegida' },
    lines: [
      {
        'en-US':
          'You have just confirmed that this email address is yours. Until then nobody had, so somebody else may have prepared the account. We removed what could have let them in.',
        'pt-BR':
          'Você acabou de confirmar que este endereço de e-mail é seu. Até então ninguém havia confirmado, e outra pessoa poderia ter preparado a conta. Removemos o que poderia dar acesso a ela.',
      },
      {
        'en-US':
          'If you set any of it up yourself, you can sign in and set it up again. If you need a new password, ask for one with this address.',
        'pt-BR': 'Se algo disso era seu, entre na conta e configure de novo. Se precisar de uma nova senha, peça uma com este endereço.',
      },
    ],
    notYou: {
      'en-US': 'If you did not confirm the address, ask for a new password right away: your mailbox may be in use by somebody else.',
      'pt-BR': 'Se não foi você quem confirmou o endereço, peça uma nova senha imediatamente: outra pessoa pode estar usando seu e-mail.',
    },
  },
  recovery_code_used: {
    subject: { 'en-US': 'A recovery code was used', 'pt-BR': 'Um código de recuperação foi usado' },
    lines: [
      {
        'en-US': 'A recovery code of your account has just been used. Each works only once: make new ones before they run out.',
        'pt-BR': 'Um código de recuperação da sua conta acaba de ser usado. Cada código vale uma única vez: gere novos antes que acabem.',
      },
    ],
    notYou: {
      'en-US': 'If it was not you, choose a new password right away and make new recovery codes.',
      'pt-BR': 'Se não foi você, troque a senha imediatamente e gere novos códigos de recuperação.',
    },
  },
  wrong_codes: {
    subject: { 'en-US': 'Wrong codes were typed for your account', 'pt-BR': 'Códigos errados foram digitados na sua conta' },
    lines: [
      {
        'en-US':
          'Three wrong codes of the two-step verification were typed for your account. Whoever typed them knows the first step of a sign-in, such as your password.',
        'pt-BR':
          'Três códigos errados da verificação em duas etapas foram digitados na sua conta. Quem os digitou conhece a primeira etapa do login, como a sua senha.',
      },
    ],
    notYou: {
      'en-US': 'If it was not you, choose a new password right away. Nobody got into your account by these codes.',
      'pt-BR': 'Se não foi você, troque a senha imediatamente. Ninguém entrou na sua conta com esses códigos.',
    },
  },
}
