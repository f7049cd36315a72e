// What the console adds where scripts run: local times, live figures, no form sent twice. Every page works without it.
"use strict";

(() => {
  const QUIET_MS = 20000; // even a slow queue is counted more often: what is on the page is old, and must say so
  const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const relative = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });
  const two = (number) => String(number).padStart(2, "0");

  // --- times

  const local = (moment) =>
    `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())} ` +
    `${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}`;

  const age = (moment) => {
    const seconds = Math.round((moment - Date.now()) / 1000);
    const [unit, size] = UNITS.find(([, length]) => Math.abs(seconds) >= length) || UNITS[3];
    return relative.format(Math.trunc(seconds / size), unit);
  };

  const showTimes = (root) => {
    for (const element of root.querySelectorAll("time[datetime]")) {
      const moment = new Date(element.dateTime);
      if (Number.isNaN(moment.getTime())) continue;
      element.textContent = local(moment) + ("age" in element.dataset ? ` (${age(moment)})` : "");
    }
  };

  const showZone = () => {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    for (const element of document.querySelectorAll("[data-zone]")) {
      element.textContent = `${zone}; the title of each has it in UTC`;
    }
  };

  // --- live figures: server-sent events, and asking every two seconds where they don't get through

  const watch = (figures) => {
    const state = document.querySelector("[data-live-state]");
    const spoken = document.querySelector("[data-announce]");
    const toggle = document.querySelector("[data-live-toggle]");
    let source = null;
    let asking = null;
    let paused = false;
    let heard = Date.now();
    let waiting = false;

    const say = (text, bad) => {
      if (state.textContent !== text) state.textContent = text;
      state.classList.toggle("bad", Boolean(bad));
    };

    const announce = () => {
      const alarm = figures.querySelector("[data-alarm]");
      const text = alarm ? alarm.textContent : "";
      if (spoken.textContent !== text) spoken.textContent = text;
    };

    const show = (html) => {
      heard = Date.now();
      htmx.swap(figures, html, { swapStyle: "innerHTML" });
      announce();
    };

    const ask = async () => {
      if (waiting) return;
      waiting = true;
      try {
        const answer = await fetch(location.pathname, { credentials: "same-origin", redirect: "manual" });
        if (answer.type === "opaqueredirect") location.reload();
        if (!answer.ok) return;
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        if (!paused) show(page.getElementById(figures.id).innerHTML);
      } catch {
        // the state line says how old the figures are
      } finally {
        waiting = false;
      }
    };

    const stop = () => {
      if (source) source.close();
      if (asking) clearInterval(asking);
      source = asking = null;
    };

    const fallBack = () => {
      stop();
      asking = setInterval(ask, 2000);
    };

    const start = () => {
      stop();
      heard = Date.now();
      source = new EventSource(figures.dataset.live);
      source.addEventListener("figures", (event) => show(event.data));
      source.addEventListener("ended", () => location.reload());
      source.addEventListener("away", fallBack);
      source.addEventListener("error", () => {
        if (source && source.readyState === EventSource.CLOSED) fallBack();
      });
    };

    setInterval(() => {
      if (paused) return;
      if (source && Date.now() - heard > QUIET_MS) fallBack();
      if (Date.now() - heard > QUIET_MS) say(`No answer since ${local(new Date(heard))}: these figures are old`, true);
      else say("Live");
    }, 1000);

    toggle.hidden = false;
    toggle.addEventListener("click", () => {
      paused = !paused;
      toggle.textContent = paused ? "Go on updating" : "Pause updates";
      if (paused) {
        stop();
        say(`Paused at ${local(new Date())}`);
      } else {
        say("Live");
        start();
      }
    });
    window.addEventListener("pagehide", stop);
    window.addEventListener("pageshow", (event) => {
      if (event.persisted && !paused) start();
    });
    say("Live");
    announce();
    start();
  };

  // --- forms: a second click while the first is under way would be a second act

  const guardForms = () => {
    document.addEventListener("submit", (event) => {
      const form = event.target;
      if (form.method !== "post") return;
      if (form.dataset.sent) {
        event.preventDefault();
        return;
      }
      form.dataset.sent = "yes";
      for (const button of form.querySelectorAll("button")) button.setAttribute("aria-disabled", "true");
    });
    window.addEventListener("pageshow", () => {
      for (const form of document.querySelectorAll("form[data-sent]")) {
        delete form.dataset.sent;
        for (const button of form.querySelectorAll("button")) button.removeAttribute("aria-disabled");
      }
    });
  };

  document.addEventListener("DOMContentLoaded", () => {
    showZone();
    showTimes(document);
    setInterval(() => showTimes(document), 10000);
    document.body.addEventListener("htmx:afterSwap", () => showTimes(document));
    guardForms();
    const figures = document.querySelector("[data-live]");
    if (figures) watch(figures);
  });
})();
